"""Adapters that run tasks. Each alone may import its SDK; none imports another."""
