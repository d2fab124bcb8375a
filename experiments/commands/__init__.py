"""The subcommands of `memtune`, one file a subject."""
