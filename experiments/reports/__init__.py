"""`report.html`, which every run writes: what it did, what changed and what the held-out test says."""
