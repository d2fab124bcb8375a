"""Local objectives: what a prompt's text does on the recorded inputs of its own operation."""
