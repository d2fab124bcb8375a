"""Optimizers from the literature, as their authors run them: for comparison, and for those who prefer them.

plain_gepa                            gepa
bootstrap, reference                  demonstrations from passing cases; feedback, one rewrite, always accepted
dspy_optimizers                       DSPy's; `memory_program` is the system as DSPy sees it, `carried_prompt` a prompt
candidate_search                      what those that try candidate after candidate have in common

None of them has our gate or takes rewrites by hand, and a spent budget passes through them. What they choose meets the
test conversations once, like any champion.
"""
