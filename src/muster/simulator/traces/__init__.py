"""Published traces as canonical records: one adapter per format, each with its units and traps in its docstring."""
