"""Attribution by information survival: what the answer needed is followed along the graph, without a model.

`method` is the entry; `need` and `needs` say what is followed, `flow` where it may be, `grading` who carries it,
`verdicts`, `updates`, `withdrawals` and `mistakes` whose fault its loss is.
"""
