"""Process trees on this machine: a supervisor that outlives the server, and the engine that speaks to it.

`engine` is the server's side and `__main__` the supervisor's; they share `frames` and `layout`. Nothing is imported
here, so that the supervisor loads only what it needs.
"""
