"""Which jobs and stacks a range of commits touches, for CI that rehearses and deploys those alone."""
