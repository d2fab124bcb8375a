"""`memtune bench`: one file a benchmark."""
