"""Optimizers compared at equal budgets of model calls."""
