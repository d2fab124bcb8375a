"""What providers' endpoints do, as habits of a scripted server, and what memtune makes of each."""
