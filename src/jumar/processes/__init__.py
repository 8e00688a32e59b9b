"""Running a program or a function: environment, limits, process tree, captured output, usage."""
