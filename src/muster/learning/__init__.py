"""Learning: advisers that watch the facts and say, in integers, what they learned. They decide nothing.

An adviser sees what the journal holds and nothing that is still to come; what it says enters the kernel as Advice, is
journaled, and ends by itself. Floats, solvers and models live here and never below.
"""
