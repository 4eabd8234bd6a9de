"""The one door: events in; facts, answers and instructions out. Pure and deterministic."""
