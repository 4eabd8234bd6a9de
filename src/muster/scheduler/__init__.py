"""The numbered cycle: what to try, in which order, and where it fits."""
