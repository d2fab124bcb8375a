"""Data sets: bundled, published and your own files; and labelled suites that attribution is measured on."""
