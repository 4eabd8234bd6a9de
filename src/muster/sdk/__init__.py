"""The Python client of the HTTP API: as light as the command line that is built on it."""
