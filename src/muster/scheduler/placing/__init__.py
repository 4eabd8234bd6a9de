"""Where an ask goes: which pools it may use, where it fits, and which of those places is best."""
