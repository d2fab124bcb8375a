"""A run on disk: its configuration, its folder and the files in it, and how runs are found and compared."""
