"""The renderings of a loop's report, one a file."""
