"""Whether blame pays: one prompt of a memory system is spoiled, and searches that do not know which win it back."""
