"""Answers of services side by side, as facts: what was said, by which form, without what is new in each answer."""
