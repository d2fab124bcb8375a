"""Attribution by counterfactual replay: one output is corrected, and the system runs again from there."""
