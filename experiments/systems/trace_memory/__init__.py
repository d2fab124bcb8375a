"""Trace memory as a memory system: an agent's turns as events, what they taught as statements, answers from both."""
