"""Attributes the wrong answers of runs and traces, resumably, and keeps the results in the attributions file."""
