"""The benchmark of matchers: pairs of a claim and a text, and replies that are right in other words."""
