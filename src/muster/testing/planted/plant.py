"""A plant: a bug for the length of a `with`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

Plant: TypeAlias = Callable[[], AbstractContextManager[None]]
