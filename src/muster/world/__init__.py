"""The one in-memory state and the fold that builds it. It holds no policy."""
