"""One trace on one page, picture or terminal: as a tree, a map, figures, or the difference of two."""
