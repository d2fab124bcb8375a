"""A memory system on the machines of a cluster: its steps run there, and the process with the run keeps the books."""
