"""Agents of five frameworks with plain memory tools, one planted fault at a time, and the traces they export."""
