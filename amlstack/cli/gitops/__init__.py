"""Files of a repository's CI, and the comment of a pull request."""
