"""Whether a difference is real: the gate that a challenger must pass, and the verdict on held-out conversations."""
