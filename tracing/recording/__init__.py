"""Recording an execution while it runs: notes are taken cheaply, and become a graph and a file when they are needed.

Start with `trace_context` (traces, sessions, variables) and `operations` (steps and decorated functions).
"""
