"""The leagues: one module each, `run(options) -> Result`, on published traces that lie in a directory of formats."""
