"""People label whose fault wrong answers are: the label store, the page's server, agreement, and export."""
