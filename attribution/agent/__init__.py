"""Attribution with a model: single probes, an agent that explores the graph, and triage between methods."""
