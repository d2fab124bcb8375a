"""Compose, run, track and show optimization experiments: settings, data sets, run folders, reports, commands."""
