"""Attribution by information survival: what the answer needed is followed along the graph, without a model.

`method` is the entry; `need` and `needs` define what is followed, `flow` where it may be, `grading` what carries it;
`verdicts`, `updates`, `withdrawals` and `mistakes` decide whose fault its loss is.
"""
