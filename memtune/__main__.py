"""`python -m memtune` is the `memtune` command."""

from memtune import main

main()
