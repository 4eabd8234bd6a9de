"""The laws of a world: what must be true of it after every entry, each with the evidence when it is not."""
