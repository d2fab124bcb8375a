"""How sure verdicts by survival may be: fitted on three kinds of cases, and measured on the kind that was left out."""
