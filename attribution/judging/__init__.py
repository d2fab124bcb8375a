"""Judging replies: by words, without a model, or by asking one; and how well two judges agree."""
