"""Attribution by counterfactual replay: one output is put right, and the system runs again from there."""
