"""Attribution with a model: single probes, and an agent that explores the graph."""
