"""Tuned prompts on their way back into the system that uses them: `export` writes, an `Exporter` says in what form."""
