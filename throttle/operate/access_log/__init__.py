"""Access logs, read: which files, which lines, in which order."""
