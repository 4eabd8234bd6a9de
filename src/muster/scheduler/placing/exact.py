"""Where one task goes if terms see nodes, compiled: every node that fits is scored as it is, device by device. Exact.

What a node scored for a class is noted with the query, and holds until the node changes: a *face* is what was seen of
a node last, and its stamp tells whether that is still so. Nodes with the same face in one pool score alike. All of
this is memory: it saves time, and a search that remembers nothing finds the same.

    faces   counter, representatives, a desk to think on, and a row by slot: stamp, what the node is worth and how much
            of it is fragments, a number made of the face, then the face itself: CPU, memory, the kinds of jobs, what
            each device has left
"""

from __future__ import annotations

from array import array
from typing import Final

from muster.scheduler.placing.book import book_of
from muster.scheduler.placing.query import (
    ALIGNMENT,
    AT_MEMO,
    BREAKING,
    CHANCE,
    CLUSTERING,
    CPU,
    DISK,
    DISPLACEMENT,
    FRAGMENTS,
    GPUS,
    MEMORY,
    MILLI,
    NETWORK,
    PATTERN,
    POOL_COUNT,
    POOL_ROWS,
    PRICE,
    ROW,
    ROW_POOL,
    ROW_RANK,
    SNUGNESS,
    STRANDING,
)
from muster.scheduler.placing.single import has_amounts, tightest_device
from muster.scheduler.placing.terms import (
    alignment,
    breaking,
    chance,
    clustering,
    fragments,
    fragments_of,
    loss,
    score_at,
    snugness,
    worth_of,
)
from muster.world.arena import (
    AT_CELLS,
    AT_DEVICES,
    AT_MEMBERS,
    AT_NODES,
    AT_POOLS,
    DEVICE,
    DEVICES,
    FREE_CPU,
    FREE_GPUS,
    FREE_MASK,
    FREE_MEMORY,
    NODE_ROW,
    NODES,
    NOWHERE,
    PLANE,
    POOL,
    POOL_FIRST,
    POOL_GPUS,
    POOL_ROW,
    POOL_SIZE,
)
from muster.world.compiled import Entry, Words, blank_words, compiled, words_of
from muster.world.fleet import Fleet
from muster.world.index import cell_at

COUNTER, AT_FACES, AT_DESK, AT_AFTER = range(4)
REPRESENTATIVES: Final = 4
"""From here on, so many words: the slot, and one, that was the last with a face of this number."""
REPRESENTATIVES_COUNT: Final = 256
DESK: Final = 2 * (DEVICE + 1)
"""Two words for each size that a class can have."""
FACE_STAMP, FACE_WORTH, FACE_FRAGMENTS, FACE_NUMBER, FACE_CPU, FACE_MEMORY, FACE_KINDS, FACE_DEVICES = range(8)
FACE_ROW: Final = 7
"""And a word per device."""
MEMO_STAMP, MEMO_POINTS, MEMO_DEVICE = range(3)
MEMO_ROW: Final = 3
SLOT_BITS: Final = 64
"""A search gives slot x 64 + device, and 63 for a device if it does not matter which."""
ANY_DEVICE: Final = 63

_SIGHT: Final = "sight"


def find_exact_place(fleet: Fleet, query: Words, job: int) -> tuple[int, int] | None:
    """The slot for one task, and the device if it takes a share of one; or None."""
    words, sight = fleet.words, _sight_of(fleet)  # which is of the memory that the query is of: before the book
    book = book_of(fleet)
    kinds = _NOBODY if fleet.crowd is None else fleet.crowd.kinds_of(len(fleet))
    found = _FIND_EXACT.call(words, query, book, sight.judged_by(words, book), kinds, job)
    return None if found < 0 else divmod(found, SLOT_BITS)


_NOBODY: Final = words_of(array("q"))


class _Sight:
    """What was seen of each node, and the book by which it was judged. Forks share it, as they share queries: whoever
    searches looks at every node anew, and no stamp is given twice."""

    __slots__ = ("_book", "_faces")

    def __init__(self, slots: int, devices: int) -> None:
        at_desk = REPRESENTATIVES + REPRESENTATIVES_COUNT
        at_after = at_desk + DESK
        at_faces = at_after + devices
        self._book: Words | None = None
        self._faces = blank_words(at_faces + slots * (FACE_ROW + devices))
        self._faces[AT_DESK], self._faces[AT_AFTER], self._faces[AT_FACES] = at_desk, at_after, at_faces

    def judged_by(self, words: Words, book: Words) -> Words:
        """The faces; by another book than before nothing is known of what they are worth."""
        if self._book is not book:
            _forget(words, self._faces)
            self._book = book
        return self._faces


def _sight_of(fleet: Fleet) -> _Sight:
    found: _Sight | None = fleet.recall(_SIGHT)
    if found is None:
        found = fleet.asked[_SIGHT] = _Sight(len(fleet), int(fleet.words[DEVICES]))
    return found


@compiled
def _forget(words: Words, faces: Words) -> None:
    """Nobody has been seen, and nobody stands for a face; stamps go on from the last one, so that no score holds."""
    for number in range(REPRESENTATIVES, REPRESENTATIVES + REPRESENTATIVES_COUNT):
        faces[number] = 0
    for slot in range(words[NODES]):
        faces[faces[AT_FACES] + slot * (FACE_ROW + words[DEVICES]) + FACE_STAMP] = 0


@compiled
def find_exact(words: Words, query: Words, book: Words, faces: Words, kinds: Words, job: int) -> int:
    """The preferred pools first, in them the best score, then the lowest slot; or NOWHERE."""
    best, best_score, best_rank, best_device = NOWHERE, 0, 0, ANY_DEVICE
    nodes, luck, gpus, milli = words[AT_NODES], query[CHANCE], query[GPUS], query[MILLI]
    cpu, memory, disk, network = query[CPU], query[MEMORY], query[DISK], query[NETWORK]
    for row in range(POOL_ROWS, POOL_ROWS + ROW * query[POOL_COUNT], ROW):
        if best != NOWHERE and query[row + ROW_RANK] > best_rank:
            break
        best_rank = query[row + ROW_RANK]
        pool = words[AT_POOLS] + POOL_ROW * query[row + ROW_POOL]
        cells, members = words[AT_CELLS] + words[pool + POOL_FIRST], words[AT_MEMBERS] + words[pool + POOL_FIRST]
        memos, looks, width = query[AT_MEMO], faces[AT_FACES], FACE_ROW + words[DEVICES]
        for rank in range(words[pool + POOL_SIZE]):
            slot = words[members + rank]
            is_open, node = words[cells + rank] != NOWHERE, nodes + NODE_ROW * slot
            if not is_open or not has_amounts(words, node, gpus, milli, cpu, memory, disk, network):
                continue
            face, memo = looks + width * slot, memos + MEMO_ROW * slot
            if query[memo + MEMO_STAMP] != faces[face + FACE_STAMP] or not _is_known(words, faces, kinds, pool, slot):
                _look(words, query, book, faces, kinds, row, slot)
            points = query[memo + MEMO_POINTS]
            if luck:
                points += luck * chance(job, slot)
            if best == NOWHERE or points > best_score or (points == best_score and slot < best):
                best, best_score, best_device = slot, points, query[memo + MEMO_DEVICE]
    if best == NOWHERE:
        return NOWHERE
    if query[CHANCE] and query[MILLI]:
        best_device = _any_device(words, query, best, job)
    return int(best * SLOT_BITS + best_device)


_FIND_EXACT: Final = Entry(find_exact)


@compiled
def _any_device(words: Words, query: Words, slot: int, job: int) -> int:
    """One of the devices that have room, by chance."""
    found, best = ANY_DEVICE, NOWHERE
    begin = words[AT_DEVICES] + slot * words[DEVICES]
    for device in range(words[DEVICES]):
        luck = chance(job, slot * SLOT_BITS + device)
        if words[begin + device] >= query[MILLI] and luck > best:
            found, best = device, luck
    return found


@compiled
def _look(words: Words, query: Words, book: Words, faces: Words, kinds: Words, row: int, slot: int) -> None:
    """Note what a node scores for a class, as it is now."""
    face = faces[AT_FACES] + slot * (FACE_ROW + words[DEVICES])
    memo = query[AT_MEMO] + MEMO_ROW * slot
    if not _is_known(words, faces, kinds, words[AT_POOLS] + POOL_ROW * query[row + ROW_POOL], slot):
        _see(words, query, book, faces, kinds, slot, face)
    if query[memo + MEMO_STAMP] == faces[face + FACE_STAMP]:
        return
    other = _find_equal(words, query, faces, slot, face)
    if other != NOWHERE:
        twin = query[AT_MEMO] + MEMO_ROW * other
        query[memo + MEMO_POINTS], query[memo + MEMO_DEVICE] = query[twin + MEMO_POINTS], query[twin + MEMO_DEVICE]
    else:
        _score(words, query, book, faces, slot, face, memo)
        cell = cell_at(words, slot)
        query[memo + MEMO_POINTS] += score_at(words, query, row, cell // PLANE, cell % PLANE)
    query[memo + MEMO_STAMP] = faces[face + FACE_STAMP]


@compiled
def _is_known(words: Words, faces: Words, kinds: Words, pool: int, slot: int) -> bool:
    """Whether a node is as it was seen last."""
    face = faces[AT_FACES] + slot * (FACE_ROW + words[DEVICES])
    node, begin = words[AT_NODES] + NODE_ROW * slot, words[AT_DEVICES] + slot * words[DEVICES]
    if (
        not faces[face + FACE_STAMP]
        or faces[face + FACE_CPU] != words[node + FREE_CPU]
        or faces[face + FACE_MEMORY] != words[node + FREE_MEMORY]
        or (len(kinds) > 0 and faces[face + FACE_KINDS] != kinds[slot])
    ):
        return False
    for device in range(words[pool + POOL_GPUS]):
        if faces[face + FACE_DEVICES + device] != words[begin + device]:
            return False
    return True


@compiled
def _see(words: Words, query: Words, book: Words, faces: Words, kinds: Words, slot: int, face: int) -> None:
    """Note how a node looks, with a stamp that no face had before, and what it is worth so."""
    node, begin = words[AT_NODES] + NODE_ROW * slot, words[AT_DEVICES] + slot * words[DEVICES]
    faces[COUNTER] += 1
    faces[face + FACE_STAMP] = faces[COUNTER]
    faces[face + FACE_CPU], faces[face + FACE_MEMORY] = words[node + FREE_CPU], words[node + FREE_MEMORY]
    if len(kinds) > 0:
        faces[face + FACE_KINDS] = kinds[slot]
    for device in range(words[DEVICES]):
        faces[face + FACE_DEVICES + device] = words[begin + device]
    number = 0
    for place in range(face + FACE_CPU, face + FACE_ROW + words[DEVICES]):
        number = (number * 31 + faces[place]) % 1000003
    faces[face + FACE_NUMBER] = number % REPRESENTATIVES_COUNT
    _judge(words, query, book, faces, words[node + POOL], face + FACE_DEVICES, face, 0, 0)


@compiled
def _judge(
    words: Words, query: Words, book: Words, faces: Words, pool: int, at: int, face: int, cpu: int, memory: int
) -> tuple[int, int]:
    """What a node is worth with these devices and so much less CPU and memory, and how much of it is fragments; noted
    with the face if it is the face's own."""
    cpu_left, memory_left = faces[face + FACE_CPU] - cpu, faces[face + FACE_MEMORY] - memory
    devices = words[words[AT_POOLS] + POOL_ROW * pool + POOL_GPUS]
    worth, lost = 0, 0
    if query[PATTERN] or query[DISPLACEMENT] or query[STRANDING]:
        worth = worth_of(book, query, pool, faces, at, devices, cpu_left, memory_left)
    if query[FRAGMENTS]:
        lost = fragments_of(book, pool, faces, at, devices, cpu_left, faces[AT_DESK])
    if at == face + FACE_DEVICES and not cpu and not memory:
        faces[face + FACE_WORTH], faces[face + FACE_FRAGMENTS] = worth, lost
    return worth, lost


@compiled
def _find_equal(words: Words, query: Words, faces: Words, slot: int, face: int) -> int:
    """A node of the same pool and face whose score is noted already, or NOWHERE. This one stands for the face now."""
    width, number = FACE_ROW + words[DEVICES], REPRESENTATIVES + faces[face + FACE_NUMBER]
    other = faces[number] - 1
    faces[number] = slot + 1
    if other < 0 or other == slot:
        return NOWHERE
    nodes, twin = words[AT_NODES], faces[AT_FACES] + other * width
    if words[nodes + NODE_ROW * other + POOL] != words[nodes + NODE_ROW * slot + POOL]:
        return NOWHERE
    if query[query[AT_MEMO] + MEMO_ROW * other + MEMO_STAMP] != faces[twin + FACE_STAMP]:
        return NOWHERE
    for place in range(FACE_CPU, width):
        if faces[face + place] != faces[twin + place]:
            return NOWHERE
    return int(other)


@compiled
def _score(words: Words, query: Words, book: Words, faces: Words, slot: int, face: int, memo: int) -> None:
    """Note the weighted sum of the terms that see nodes, at the best device if a share is asked for: of equals, the
    tightest, and the lowest of those."""
    base = _score_node(words, query, book, faces, slot, face)
    if not query[MILLI]:
        _take_devices(words, query, faces, slot, face)
        query[memo + MEMO_POINTS] = base + _score_change(words, query, book, faces, slot, face)
        query[memo + MEMO_DEVICE] = ANY_DEVICE
        return
    best, best_device, least = NOWHERE, ANY_DEVICE, 0
    for device in range(words[DEVICES]):
        left = faces[face + FACE_DEVICES + device]
        if left < query[MILLI] or _came_before(faces, face + FACE_DEVICES, device):
            continue
        _take_share(words, query, faces, face, device)
        points = _score_change(words, query, book, faces, slot, face)
        if best_device == ANY_DEVICE or points > best or (points == best and left < least):
            best, best_device, least = points, device, left
    query[memo + MEMO_POINTS], query[memo + MEMO_DEVICE] = base + best, best_device


@compiled
def _came_before(faces: Words, at: int, device: int) -> bool:
    """Whether a lower device has as much left: what is equal need not be judged twice."""
    for other in range(at, at + device):  # noqa: SIM110 - compiled code has no generators
        if faces[other] == faces[at + device]:
            return True
    return False


@compiled
def _take_share(words: Words, query: Words, faces: Words, face: int, device: int) -> None:
    """Write down the devices of a node as they would be with a share of one taken."""
    for place in range(words[DEVICES]):
        faces[faces[AT_AFTER] + place] = faces[face + FACE_DEVICES + place]
    faces[faces[AT_AFTER] + device] -= query[MILLI]


@compiled
def _take_devices(words: Words, query: Words, faces: Words, slot: int, face: int) -> None:
    """Write down the devices of a node as they would be with the lowest whole ones taken."""
    free, wanted = words[words[AT_NODES] + NODE_ROW * slot + FREE_MASK], query[GPUS]
    for place in range(words[DEVICES]):
        left = faces[face + FACE_DEVICES + place]
        if wanted and free >> place & 1:
            left, wanted = 0, wanted - 1
        faces[faces[AT_AFTER] + place] = left


@compiled
def _score_node(words: Words, query: Words, book: Words, faces: Words, slot: int, face: int) -> int:
    """The terms that do not mind which device it is."""
    node, milli = words[AT_NODES] + NODE_ROW * slot, 0
    for place in range(face + FACE_DEVICES, face + FACE_DEVICES + words[DEVICES]):
        milli += faces[place]
    points = 0
    if query[ALIGNMENT]:
        points += query[ALIGNMENT] * alignment(book, query, faces[face + FACE_CPU], milli)
    if query[SNUGNESS]:
        points += query[SNUGNESS] * snugness(book, query, faces[face + FACE_CPU], milli)
    if query[CLUSTERING]:
        points += query[CLUSTERING] * clustering(book, query, faces[face + FACE_KINDS], milli)
    if query[BREAKING]:
        part, pool = DEVICE, words[AT_POOLS] + POOL_ROW * words[node + POOL]
        if query[MILLI]:
            part = faces[face + FACE_DEVICES + tightest_device(words, slot, query[MILLI], 0)]
        points += query[BREAKING] * breaking(query, words[pool + POOL_GPUS], words[node + FREE_GPUS], part)
    return int(points)


@compiled
def _score_change(words: Words, query: Words, book: Words, faces: Words, slot: int, face: int) -> int:
    """The terms that compare a node with what would be left of it, which is written down."""
    pool, points = words[words[AT_NODES] + NODE_ROW * slot + POOL], 0
    worth, lost = _judge(words, query, book, faces, pool, faces[AT_AFTER], face, query[CPU], query[MEMORY])
    if query[FRAGMENTS]:
        points += query[FRAGMENTS] * fragments(faces[face + FACE_FRAGMENTS], lost)
    if query[PATTERN] or query[DISPLACEMENT] or query[STRANDING] or query[PRICE]:
        points += loss(book, query, pool, faces[face + FACE_WORTH], worth)
    return int(points)
