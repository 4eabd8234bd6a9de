"""Muster: one queue over every accelerator an organisation has.

This module stays empty of imports so that `import muster` costs nothing; each room is imported by its own name.
"""

__version__ = "0.1.0"
