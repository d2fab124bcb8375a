"""Reading text: tokens, stems, numbers, dates, set phrases, and how much of one text another contains.

Whatever compares texts uses these, so that each question about words has one answer.
"""
