"""What `import memtune` offers: runs and attributions that are started with objects, and their results."""
