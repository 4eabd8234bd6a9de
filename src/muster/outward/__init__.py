"""What the server itself asks of the outside: guarded HTTP requests and commands. It decides nothing about jobs."""
