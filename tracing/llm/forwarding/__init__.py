"""Models of one process used by another: a worker forwards its calls, and the process with the run answers them."""
