"""A run in MLflow. `tracking` defines what is recorded, and `metrics` and `description` what is seen first; each write
is data that goes through the `outbox`, so that an unreachable store costs only time; `sqlite_store` makes the local
store safely; `ui` shows it."""
