"""The diagnosis that `memtune report` writes: why answers are wrong, and what would help, each claim with its cases."""
