"""Proposers: who writes new texts for a prompt, from what, and within which limits."""
