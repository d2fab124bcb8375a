"""What differs from language to language: small words, forms of words, times, denials, withdrawals, nicknames."""
