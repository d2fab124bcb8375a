"""Measuring methods of attribution: suites of labelled cases, scores, and baselines."""
