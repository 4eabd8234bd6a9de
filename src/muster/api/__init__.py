"""The HTTP surface: served by the follower. It parses, asks and renders; it decides nothing."""
