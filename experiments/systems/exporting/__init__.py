"""Writes tuned prompts for the system that uses them: `export` writes them, an `Exporter` determines the form."""
