"""A program as it is, as a memory system: its prompts are found in its requests, and written back where they stand."""
