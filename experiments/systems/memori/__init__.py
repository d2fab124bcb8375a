"""Memori 3.3.x: the real SDK on sqlite, with fact extraction by a local prompt in place of its cloud's."""
