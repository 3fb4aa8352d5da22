"""Azure Policy on requests: what assignments write into a body, and what they refuse."""
