"""Rewrite the blamed prompts: proposals from several sources, a contract gate, a validation gate, and the loop.

Modules are imported by name (`optimizer.loop`, `optimizer.proposals`); heavy libraries load when they are first used.
"""
