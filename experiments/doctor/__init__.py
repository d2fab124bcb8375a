"""What a run on this machine would stumble over, looked for before it does: `memtune doctor`."""
