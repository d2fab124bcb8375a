"""The subcommands of `memtune`, one file a subject. They read options, call the other rooms and print."""
