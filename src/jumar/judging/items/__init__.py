"""Items that are judged: read from files, each named by file and line."""
