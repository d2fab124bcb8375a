"""The execution graph: which operation read which variables and made which; slices, paths, search and comparison."""
