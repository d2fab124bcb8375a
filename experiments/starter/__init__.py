"""What `memtune init` writes: a configuration with every key, and a memory system to begin with."""
