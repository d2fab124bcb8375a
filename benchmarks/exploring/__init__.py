"""Measuring the agent that explores a trace, by questions that have a right answer in the graph."""
