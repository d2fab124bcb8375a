"""One agent a framework, on the real package: each runs in an environment of its own, since their pins conflict."""
