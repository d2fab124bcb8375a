"""Reading text: tokens, stems, numbers, dates, set phrases, and how much of one text another contains.

All comparisons of texts use these, so that they agree.
"""
