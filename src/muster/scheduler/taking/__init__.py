"""Whose places are taken for whom: who might look, who could be had, and who loses least."""
