"""Wrong gold answers: what in the conversation speaks against an annotation, without a run and without a model."""
