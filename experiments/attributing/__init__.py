"""Whose fault many wrong answers are: finds the cases of runs and traces, attributes them resumably, keeps the results
in the attributions file."""
