"""Transition tables: the only source of what may follow what."""
