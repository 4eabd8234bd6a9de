"""The composition root: the only place that knows which store, engine and clock are in use."""
