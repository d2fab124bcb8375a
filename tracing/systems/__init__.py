"""Memory systems under test: what one is, the built-in ones, and how tuned prompts go back into them."""
