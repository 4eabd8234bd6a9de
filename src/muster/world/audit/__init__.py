"""The auditor and its books, kept from the facts alone: a second way to everything that a world says of itself."""
