"""The benchmark of languages: replies right in another form, and wrong ones near them, in fifteen languages."""
