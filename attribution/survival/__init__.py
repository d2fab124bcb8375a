"""Attribution by information survival: what the answer needed is followed along the graph, without a model.

`survival_method` is the entry; `need` and `needs` define what is followed, `flow` and `case_view` where it may be,
the subpackage `matching` what carries it, and `gold` what a faultless system would know and say; the subpackage
`verdicts` decides whose fault its loss is, and `calibration` how sure that is.
"""
