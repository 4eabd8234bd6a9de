"""The dice of the published packing runs: the same seed gives the same stream and the same nodes, number for number.

The published simulator draws from the additive generator of its language (Mitchell and Reeds): each word of 64 bits is
the sum of those 273 and 607 words before it. Its first words are those that the same rule comes to after 7.8e12 steps
from a plain start, mixed with what a smaller generator makes of the seed. Here those words are reckoned and not listed:
so many steps at once are a power of x, modulo the rule as a polynomial.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from functools import cache
from typing import Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

LONG: Final = 607
SHORT: Final = 273
STEPS: Final = 7_800_000_000_000
PRIME: Final = (1 << 31) - 1
FACTOR: Final = 48271
WARMING: Final = 20
WORD: Final = (1 << 64) - 1
HALF_WORD: Final = (1 << 32) - 1

_Polynomial: TypeAlias = npt.NDArray[np.uint64]
_Thing = TypeVar("_Thing")


class Dice:
    """Numbers from a seed. `_words` are the last of them, and `_at` is where the oldest is."""

    def __init__(self, seed: int) -> None:
        mixed = [plain ^ far for plain, far in zip(_spread(seed % PRIME, 20), _far_words(), strict=True)]
        self._words = _in_order(mixed)
        self._at = 0

    def below(self, count: int) -> int:
        """A number from 0 to one below `count`, each as likely: what would favour some is thrown again."""
        most = PRIME - (1 << 31) % count
        while (found := self._draw() >> 32) > most and count & (count - 1):
            pass
        return found % count

    def shuffle(self, things: MutableSequence[_Thing]) -> None:
        """Put things in a random order, from the last place down."""
        for last in range(len(things) - 1, 0, -1):
            other = self._scale(last + 1)
            things[last], things[other] = things[other], things[last]

    def ranks(self, count: int) -> list[int]:
        """A random order of so many things: the place of each."""
        found = [0] * count
        for last in range(count):
            other = self.below(last + 1)
            found[last], found[other] = found[other], last
        return found

    def skip(self, count: int) -> None:
        """Numbers that somebody else took."""
        for _ in range(count):
            self._draw()

    def _draw(self) -> int:
        """The next number, of 63 bits."""
        word = (self._words[self._at] + self._words[(self._at + LONG - SHORT) % LONG]) & WORD
        self._words[self._at] = word
        self._at = (self._at + 1) % LONG
        return word & (WORD >> 1)

    def _scale(self, count: int) -> int:
        """A number below `count`, by a product instead of a rest; what would favour some is thrown again."""
        product = (self._draw() >> 31) * count
        while product & HALF_WORD < count and product & HALF_WORD < (1 << 32) % count:
            product = (self._draw() >> 31) * count
        return product >> 32


def _spread(seed: int, shift: int) -> list[int]:
    """Words from a seed, each of three numbers of the smaller generator."""
    number, words = seed, list[int]()
    for _ in range(WARMING):
        number = number * FACTOR % PRIME
    for _ in range(LONG):
        word = 0
        for place in (2, 1, 0):
            number = number * FACTOR % PRIME
            word ^= number << (shift * place)
        words.append(word)
    return words


def _in_order(words: list[int]) -> list[int]:
    """The words of a state in the order in which they are used up; the generator walks its table backwards."""
    return [words[(LONG - SHORT - 1 - at) % LONG] for at in range(LONG)]


@cache
def _far_words() -> list[int]:
    """The words of the plain start after all the steps."""
    words = _in_order(_spread(1, 10))
    for at in range(LONG, 2 * LONG):
        words.append((words[at - LONG] + words[at - SHORT]) & WORD)
    column, power = np.array(words, dtype=np.uint64), _power_of_x(STEPS)
    found = [0] * LONG
    for at in range(LONG):
        place = (LONG - SHORT - 1 - (STEPS - LONG + at)) % LONG
        found[place] = int(np.sum(power * column[at : at + LONG], dtype=np.uint64))
    return found


def _power_of_x(exponent: int) -> _Polynomial:
    found, square = np.zeros(LONG, dtype=np.uint64), np.zeros(LONG, dtype=np.uint64)
    found[0] = square[1] = 1
    while exponent:
        if exponent & 1:
            found = _times(found, square)
        square, exponent = _times(square, square), exponent >> 1
    return found


def _times(one: _Polynomial, other: _Polynomial) -> _Polynomial:
    """A product modulo the rule: x^607 is x^334 + 1. The highest powers first, no more at a time than the short lag."""
    product = np.convolve(one, other)
    end = len(product)
    while end > LONG:
        begin = max(LONG, end - SHORT)
        high = product[begin:end].copy()
        product[begin - LONG : end - LONG] += high
        product[begin - SHORT : end - SHORT] += high
        end = begin
    return product[:LONG]
