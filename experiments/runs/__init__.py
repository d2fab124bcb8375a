"""Runs on disk: configuration, folder and files, and how runs are found and compared."""
