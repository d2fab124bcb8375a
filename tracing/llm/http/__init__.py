"""Requests to OpenAI-compatible endpoints over HTTP: bodies, retries, and replies read strictly."""
