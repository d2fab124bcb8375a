"""Whose fault the loss of what an answer needed is.

`lost` decides for content that should have survived, `updates` for the update stage, `withdrawals` for questions
without an answer; `mistakes` finds those of the judge and the annotation.
"""
