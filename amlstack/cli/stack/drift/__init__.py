"""What is there otherwise than the stack's state has it, found without changing either."""
