"""Questions from conversations that have none: drafted by a model from cited turns, and kept only where tests hold."""
