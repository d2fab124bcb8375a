"""Agents of many frameworks with plain memory tools, one planted fault at a time, and the traces of them."""
