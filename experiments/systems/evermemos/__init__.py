"""The stages of EverMemOS in one process: episodes, atomic facts, profiles, and a search that checks itself."""

from experiments.systems.evermemos.system import EverMemOS

__all__ = ["EverMemOS"]
