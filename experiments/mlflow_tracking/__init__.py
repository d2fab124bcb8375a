"""A run in MLflow.

`tracking` defines what is recorded, `run_metrics` and `run_description` what is seen first; each
write is data that goes through the `outbox`, so that an unreachable store costs only time; `sqlite_store` makes the
local store safely; `server_ui` shows it.
"""
