"""The diagnosis, which `memtune diagnose` writes: why answers are wrong, what would help, each claim with its cases."""
