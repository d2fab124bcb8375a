"""Operations that the built-in systems share: asking for facts, retrieval by embedding, and the answer."""
