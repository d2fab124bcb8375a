"""What a trace memory saves and finds on the data set `agent-traces`, and how fast it is."""
