"""Matchers: what decides whether a text carries what a question needs, about the right person, at the right time.

`matcher` has the Protocol and its registry, `word_matcher` the default.
"""
