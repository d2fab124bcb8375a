"""What models are worth as authors of prompts."""
