"""Adapters that keep the journal. None interprets what it keeps."""
