"""What a repository's CI needs beyond the other verbs: its files, and the comment of a pull request."""
