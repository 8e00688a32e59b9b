"""`[evaluator]` of a loop."""
