"""One run: `parts` opens what a configuration names; `run` prepares, lets the optimizer search and finishes."""
