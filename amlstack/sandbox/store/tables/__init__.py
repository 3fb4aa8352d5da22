"""The sandbox's tables: one module per noun, each with frozen rows and the few statements that touch them."""
