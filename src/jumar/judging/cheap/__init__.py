"""The cheap judge: the components of its score, and the evaluator that puts them together."""
