"""Shapes that leave the process: the one fact codec, what leader and follower say to each other, and the API's JSON."""
