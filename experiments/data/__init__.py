"""Data sets: the bundled sample, JSONL files, LoCoMo, and the labelled suites that attribution is measured on."""
