"""Attributes many wrong answers: finds the cases of runs and traces, attributes them resumably, keeps the results in
the attributions file."""
