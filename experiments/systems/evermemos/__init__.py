"""The stages of EverMemOS in one process: episodes, atomic facts, profiles, and a search that checks itself."""
