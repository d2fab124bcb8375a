"""`memtune trace`: look at recorded graphs, and exchange them with other tools."""
