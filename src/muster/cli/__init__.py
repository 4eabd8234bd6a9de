"""The command line. Light by contract: it imports units, model, wire and sdk, and nothing of the server."""
