"""What is fast: the papers' algorithms and better ones, as plain functions from instance to plan.

No solver is used here, and Pyomo is never imported.
"""
