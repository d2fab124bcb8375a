"""Wrong answers with a known cause: faults that are aimed by the data's annotations and by lineage alone."""
