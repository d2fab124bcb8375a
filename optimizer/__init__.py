"""Rewrite the blamed prompts: proposals from several sources, a contract gate, a validation gate, and the loop.

Rooms: `proposers` writes new texts, `evaluation` scores candidates and keeps the memories they built,
`gating` decides whether a difference is real, `search` is the loop that joins them. Heavy libraries
load when they are first used.
"""
