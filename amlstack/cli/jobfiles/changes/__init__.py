"""Jobs and stacks that a range of commits touches, for CI that rehearses and deploys only those."""
