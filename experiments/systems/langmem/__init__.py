"""LangMem: its memory store manager reads and searches, on a store in memory."""
