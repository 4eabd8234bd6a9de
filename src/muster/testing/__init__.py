"""The public test kit: scenes, conformance suites, checkers."""
