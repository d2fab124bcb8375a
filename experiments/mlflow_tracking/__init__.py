"""A run in MLflow. `tracking` says what is recorded; each write is data that goes through the `outbox`, so that a store
which is away costs nothing but time; `sqlite_store` makes the local store safely; `ui` shows it."""
