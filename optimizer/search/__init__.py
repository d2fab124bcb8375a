"""The optimizers that attribution guides, and the steps around every optimizer's search."""
