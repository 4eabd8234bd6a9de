"""The leader and follower drivers: the body that gives the kernel a wall clock, a journal and engines."""
