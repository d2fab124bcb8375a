"""`memtune bench`: one file per benchmark."""
