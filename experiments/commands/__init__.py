"""The subcommands of `memtune`, one file per subject. They read options, call the other subpackages and print."""
