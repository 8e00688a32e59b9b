"""The working directory of a loop: where it is, how it is protected and brought back."""
