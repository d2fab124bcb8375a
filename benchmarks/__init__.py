"""Measurements of memtune itself: its cost, its accuracy, and what each of its parts adds."""
