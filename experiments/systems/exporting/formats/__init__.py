"""The forms of other tools, for any system: constants of a program, DSPy, MLflow's registry."""
