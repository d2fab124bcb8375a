"""What calls cost: what may be spent, what was spent and for what, and what a run has paid for."""
