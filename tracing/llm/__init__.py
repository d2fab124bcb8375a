"""Access to language and embedding models: cache, budgets, metering, and the models that run in this process."""
