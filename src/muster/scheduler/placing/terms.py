"""Score terms, compiled: integers from 0 to 1000, by which one place is better than another. The one table of them.

A term sees a node as the index does, as a cell of its pool: whole devices free, the largest broken device, steps of CPU
and memory. So nodes of one cell score alike, and the search compares cells instead of nodes. Each term looks at devices
alone, at devices and CPU, or at CPU and memory; so the score of a cell is a sum of three numbers, which are written
down once per class and pool. The weights come with the query, from the Profile; a weight of 0 switches a term off.

The terms of the second part see a node as it is, device by device, and the book of what is known of those who come. As
soon as one of them is weighed, every node that fits is looked at: see `muster.scheduler.placing.exact`.

Adding a term: a function here, its line in one of the sums, its weight in `query` and in `muster.model.profile`.
"""

from __future__ import annotations

from typing import Final

from muster.scheduler.placing.book import (
    AT_CLASSES,
    AT_SIZES,
    AT_VALUES,
    CLASS_CPU,
    CLASS_GPUS,
    CLASS_MEMORY,
    CLASS_PLACES,
    CLASS_ROW,
    CLASS_SHARE,
    CLASS_SIZE,
    CLASS_VALUE,
    CLASSES,
    FLAVOR_PRICE,
    FLAVOR_WEIGHTS,
    MOST_CPU,
    MOST_GPUS,
    NO_SIZE,
    ONE,
    SIZE_FIRST,
    SIZE_LEAST,
    SIZE_ROW,
    SIZES,
    flavor_at,
)
from muster.scheduler.placing.query import (
    BALANCE,
    COST,
    CPU,
    DISPLACEMENT,
    FILLING,
    FITTING,
    GPUS,
    MENDING,
    MILLI,
    MIX_COUNT,
    PACKING,
    PATTERN,
    POOL_COUNT,
    POOL_ROWS,
    PRICE,
    ROW,
    ROW_POOL,
    ROW_TABLE,
    SCARCITY,
    SPARING,
    STEADINESS,
    STRANDING,
)
from muster.world.arena import (
    AT_POOLS,
    DEVICE,
    PARTS,
    PLANE,
    POOL_COST,
    POOL_GPUS,
    POOL_RISK,
    POOL_ROW,
    POOL_SCARCITY,
    RISKIEST,
    STEPS,
)
from muster.world.compiled import Words, compiled

FULL: Final = 1000
PERCENT: Final = 100
PARTS_OF_ONE: Final = ONE
MIDDLE: Final = 500_000
"""What a placement scores that costs nothing beyond its own worth."""
PLACES_MAX: Final = 10**11
"""More than any node's places are worth: with any weight it stays inside a word."""
GRAIN: Final = 100 * PARTS_OF_ONE
"""The step in which costs are compared: a hundredth of a device, times ten for the tenths that weights are in."""
LOGITS: Final = (
    0,
    40_005_335,
    80_042_708,
    120_144_312,
    160_342_651,
    200_670_696,
    241_162_057,
    281_851_153,
    322_773_393,
    363_965_378,
    405_465_109,
    447_312_219,
    489_548_226,
    532_216_814,
    575_364_145,
    619_039_209,
    663_294_218,
    708_185_058,
    753_771_803,
    800_119_301,
    847_297_861,
    895_384_048,
    944_461_609,
    994_622_576,
    1_045_968_556,
    1_098_612_289,
    1_152_679_510,
    1_208_311_206,
    1_265_666_374,
    1_324_925_415,
    1_386_294_362,
    1_450_010_176,
    1_516_347_490,
    1_585_627_264,
    1_658_228_077,
    1_734_601_056,
    1_815_289_967,
    1_900_958_762,
    1_992_430_165,
    2_090_741_097,
    2_197_224_578,
    2_313_634_930,
    2_442_347_036,
    2_586_689_345,
    2_751_535_314,
    2_944_438_980,
    3_178_053_831,
    3_476_098_690,
    3_891_820_299,
    4_595_119_851,
)
"""The least that has to be gained for 50, 51, ... hundredths of a logistic curve, in millionths of a thousandth of a
device: a thousand of those are one on the curve's axis."""


@compiled
def packing(most: int, left: int) -> int:
    """Whole devices: the fewer a node has left, the better it was filled."""
    return FULL * (most - left) // most if most else 0


@compiled
def filling(cpu: int, memory: int) -> int:
    """CPU and memory: a fuller node before an emptier one."""
    return FULL * (2 * (STEPS - 1) - cpu - memory) // (2 * (STEPS - 1))


@compiled
def balance(most: int, left: int, cpu: int) -> int:
    """What is left should be usable together: devices without CPU are stranded, and CPU without devices is idle."""
    if not most:
        return FULL
    return FULL - FULL * abs((STEPS - 1) * left - most * cpu) // ((STEPS - 1) * most)


@compiled
def sparing(wants_devices: int, most: int, left: int) -> int:
    """Work that needs no device keeps off nodes whose devices are free."""
    return FULL if wants_devices or not most else FULL - FULL * left // most


@compiled
def mending(milli: int, part: int) -> int:
    """A share of a device goes to one that is broken already, if one surely has room."""
    return FULL if milli and bound_of_part(part) >= milli else 0


@compiled
def steadiness(risk: int) -> int:
    """A node that failed again and again of late comes after one that did not."""
    return FULL - FULL * risk // RISKIEST


@compiled
def fitting(query: Words, most: int, before: int, after: int) -> int:
    """What is left should be of use to those who are there: devices that are no multiple of a size are stranded for it.
    The fewer a placement strands for the mix, each size by its weight, the better; half of all if nothing changes."""
    mix = POOL_ROWS + ROW * query[POOL_COUNT]
    stranded, worst = 0, 0
    for pair in range(mix, mix + 2 * query[MIX_COUNT], 2):
        size, weight = query[pair], query[pair + 1]
        stranded += weight * (after % size - before % size)
        worst += weight * min(most, size - 1)
    return FULL * (worst - stranded) // (2 * worst) if worst else FULL


@compiled
def left_of(query: Words, gpus: int, part: int) -> int:
    """Whole devices that a task leaves free for sure of so many: a share breaks one unless it surely mends."""
    if query[MILLI]:
        return max(0, gpus - int(bound_of_part(part) < query[MILLI]))
    return int(gpus - query[GPUS])


@compiled
def bound_of_part(part: int) -> int:
    """The least that the largest broken device has left at a step."""
    if part <= 1:
        return part
    return 250 if part == 2 else 500


@compiled
def device_points(words: Words, query: Words, pool: int, gpus: int, part: int) -> int:
    """All terms that look at the pool and at devices alone."""
    most, wants_devices = words[pool + POOL_GPUS], int(query[GPUS] + query[MILLI] > 0)
    return int(
        query[PACKING] * packing(most, gpus - query[GPUS])
        + query[SPARING] * sparing(wants_devices, most, gpus)
        + query[MENDING] * mending(query[MILLI], part)
        + query[SCARCITY] * (FULL - words[pool + POOL_SCARCITY])
        + query[COST] * (FULL - words[pool + POOL_COST])
        + query[STEADINESS] * steadiness(words[pool + POOL_RISK])
        + query[FITTING] * fitting(query, most, gpus, left_of(query, gpus, part))
    )


@compiled
def balance_points(words: Words, query: Words, pool: int, gpus: int, cpu: int) -> int:
    """All terms that look at devices and CPU."""
    return int(query[BALANCE] * balance(words[pool + POOL_GPUS], gpus - query[GPUS], cpu))


@compiled
def filling_points(query: Words, cpu: int, memory: int) -> int:
    """All terms that look at CPU and memory."""
    return int(query[FILLING] * filling(cpu, memory))


@compiled
def table_size(words: Words, pool: int) -> int:
    """Words that the table of one pool needs: points and bounds by plane, by devices and CPU, by CPU and memory."""
    devices = words[words[AT_POOLS] + POOL_ROW * pool + POOL_GPUS] + 1
    return int(devices * (2 * PARTS + STEPS) + PLANE)


@compiled
def write_table(words: Words, query: Words, row: int) -> None:
    """Write down the three sums of a query's pool, and for each plane the best that a cell in it could have."""
    pool, at = words[AT_POOLS] + POOL_ROW * query[row + ROW_POOL], query[row + ROW_TABLE]
    devices, most = words[pool + POOL_GPUS] + 1, 0
    balances, fillings = at + 2 * PARTS * devices, at + (2 * PARTS + STEPS) * devices
    for bit in range(PLANE):
        query[fillings + bit] = filling_points(query, bit // STEPS, bit % STEPS)
        most = max(most, query[fillings + bit])
    for gpus in range(devices):
        best = 0
        for cpu in range(STEPS):
            query[balances + gpus * STEPS + cpu] = balance_points(words, query, pool, gpus, cpu)
            best = max(best, query[balances + gpus * STEPS + cpu])
        for part in range(PARTS):
            plane = gpus * PARTS + part
            query[at + plane] = device_points(words, query, pool, gpus, part)
            query[at + PARTS * devices + plane] = query[at + plane] + best + most


@compiled
def bound_at(words: Words, query: Words, row: int, plane: int) -> int:
    """The best that a cell of a plane could score."""
    pool = words[AT_POOLS] + POOL_ROW * query[row + ROW_POOL]
    return int(query[query[row + ROW_TABLE] + PARTS * (words[pool + POOL_GPUS] + 1) + plane])


@compiled
def places_in_table(words: Words, query: Words, row: int, plane: int) -> tuple[int, int, int]:
    """Where in the table the three sums of the cells of a plane are: that of the plane, those by CPU, and those by CPU
    and memory. For who adds up many: what is added is what `score_at` adds."""
    devices = words[words[AT_POOLS] + POOL_ROW * query[row + ROW_POOL] + POOL_GPUS] + 1
    at = query[row + ROW_TABLE]
    balances = at + 2 * PARTS * devices
    return at + plane, balances + plane // PARTS * STEPS, balances + STEPS * devices


@compiled
def score_at(words: Words, query: Words, row: int, plane: int, bit: int) -> int:
    """The weighted sum of all terms for placing one task on a node of a cell, from the table."""
    devices, balances, fillings = places_in_table(words, query, row, plane)
    return int(query[devices] + query[balances + bit // STEPS] + query[fillings + bit])


# -- terms that see a node ---------------------------------------------------------------------------------------------


@compiled
def chance(job: int, slot: int) -> int:
    """Anybody's luck: a number from job and node that looks like a die's."""
    word = (job * 40692 + slot * 48271 + 12345) % 2147483647
    for _ in range(3):
        word = (word * 16807 + (word >> 11)) % 2147483647
    return word % (FULL + 1)


@compiled
def alignment(book: Words, query: Words, cpu: int, milli: int) -> int:
    """Free and asked-for amounts as vectors, each of the largest node's: the smaller their product, the better."""
    most_cpu, most_milli = book[MOST_CPU], DEVICE * book[MOST_GPUS]
    asked = DEVICE * query[GPUS] + query[MILLI]
    product = PARTS_OF_ONE * cpu // most_cpu * query[CPU] // most_cpu
    product += PARTS_OF_ONE * milli // most_milli * asked // most_milli
    return int((2 * PARTS_OF_ONE - product) * PERCENT // (2 * PARTS_OF_ONE) * (FULL // PERCENT))


@compiled
def snugness(book: Words, query: Words, cpu: int, milli: int) -> int:
    """Best fit: the less CPU and the less of the devices are left, both of the largest node's, the better."""
    most_cpu, most_milli = book[MOST_CPU], DEVICE * book[MOST_GPUS]
    cpu_left, milli_left = cpu - query[CPU], milli - DEVICE * query[GPUS] - query[MILLI]
    left = cpu_left * most_milli + milli_left * most_cpu
    return int(PERCENT * (2 * most_cpu * most_milli - left) // (2 * most_cpu * most_milli) * (FULL // PERCENT))


@compiled
def clustering(book: Words, query: Words, kinds: int, milli: int) -> int:
    """Equals together: first where only tasks of the same kind are, then where some are, then empty nodes, then others;
    among those, the fullest."""
    if not query[GPUS] + query[MILLI]:
        return 0
    own, quarter = 1 << query[GPUS], PERCENT // 4
    base = 3 if kinds == own else 2 if kinds & own else 0 if kinds else 1
    most = DEVICE * book[MOST_GPUS]
    return int((quarter * (most - milli) // most + base * quarter) * (FULL // PERCENT))


@compiled
def breaking(query: Words, gpus: int, free: int, part: int) -> int:
    """Devices that are broken already before whole ones, nodes in use before empty ones; the fewer are broken, and the
    less is left of a broken one that is used, the better. `part` is what the tightest that fits has left."""
    if not query[GPUS] + query[MILLI]:
        return 0
    if free == gpus:
        return int(max(PERCENT // 3 - gpus, gpus) * (FULL // PERCENT))
    if query[GPUS] or part == DEVICE:
        return int(max(PERCENT // 2 - max(1, query[GPUS]), PERCENT // 3) * (FULL // PERCENT))
    return int(max(PERCENT - part * PERCENT // DEVICE // 10, PERCENT // 2) * (FULL // PERCENT))


@compiled
def fragments(before: int, after: int) -> int:
    """Fragmentation gradient descent: the less a placement adds to what the classes that come cannot use, the better. A
    logistic curve of it in hundredths, rounded down: many places are then equally good, and the lowest of them fills up
    first. Without the rounding it is far worse."""
    gain = before - after
    points = 50
    while points < PERCENT - 1 and gain >= LOGITS[points - 49]:
        points += 1
    while points > 0 and gain < (LOGITS[points - 50] if points >= 50 else -LOGITS[50 - points]):
        points -= 1
    return points * (FULL // PERCENT)


@compiled
def fragments_of(book: Words, pool: int, faces: Words, at: int, devices: int, cpu: int, desk: int) -> int:
    """What is free of a node's devices and of no use to each class, weighed by how often it comes; all of it, if the
    class takes no device, may not run there, or lacks CPU or devices. In millionths of a thousandth of a device."""
    total, found = 0, 0
    for device in range(at, at + devices):
        total += faces[device]
    for size in range(book[SIZES]):
        least, low, count = book[book[AT_SIZES] + SIZE_ROW * size + SIZE_LEAST], 0, 0
        for device in range(at, at + devices):
            if faces[device] < least:
                low += faces[device]
            else:
                count += 1
        faces[desk + 2 * size], faces[desk + 2 * size + 1] = low, count
    weights = flavor_at(book, pool) + FLAVOR_WEIGHTS
    for number in range(book[CLASSES]):
        row = book[AT_CLASSES] + CLASS_ROW * number
        size, lost = book[row + CLASS_SIZE], total
        may_run = size != NO_SIZE and book[weights + number] >= 0 and cpu >= book[row + CLASS_CPU]
        if may_run and faces[desk + 2 * size + 1] >= book[row + CLASS_GPUS]:
            lost = faces[desk + 2 * size]
        found += book[row + CLASS_SHARE] * lost
    return int(found)


@compiled
def value_of(book: Words, faces: Words, at: int, devices: int) -> int:
    """What is left of some devices is worth, each by itself, in thousandths of a device."""
    total = 0
    for device in range(at, at + devices):
        total += book[book[AT_VALUES] + faces[device]]
    return total


@compiled
def worth_of(book: Words, query: Words, pool: int, faces: Words, at: int, devices: int, cpu: int, memory: int) -> int:
    """What a node is worth as it is: what its devices are worth by their pattern, and the places for each class, less
    what would be stranded if that class came; a little of that is harmless and a lot is not, so it counts as a square.
    In tenths of millionths of a thousandth of a device."""
    value, places, stranded, largest = value_of(book, faces, at, devices), 0, 0, 0
    for device in range(at, at + devices):
        largest = max(largest, faces[device])
    flavor, size = flavor_at(book, pool) + FLAVOR_WEIGHTS, book[AT_SIZES]
    end = size + SIZE_ROW * book[SIZES]
    while size < end and book[size + SIZE_LEAST] <= largest:
        count = shares_in(faces, at, devices, book[size + SIZE_LEAST])
        for number in range(book[size + SIZE_FIRST], book[size + SIZE_ROW + SIZE_FIRST]):
            if book[flavor + number] >= 0:
                row = book[AT_CLASSES] + CLASS_ROW * number
                room = room_for(book, row, count, cpu, memory)
                places += book[row + CLASS_PLACES] * room
                gap = max(0, value - room * book[row + CLASS_VALUE])
                stranded += book[flavor + number] * gap * gap
        size += SIZE_ROW
    if size < end:  # what is too large for every device strands all of them
        stranded += book[flavor + book[CLASSES] + (size - book[AT_SIZES]) // SIZE_ROW] * value * value
    worth = PARTS_OF_ONE * query[PATTERN] * value + 1000 * query[DISPLACEMENT] * min(places, PLACES_MAX)
    return int(worth - query[STRANDING] * (stranded // max(1, value)))


@compiled
def shares_in(faces: Words, at: int, devices: int, size: int) -> int:
    """How often a size is in what is left of some devices."""
    count = 0
    for device in range(at, at + devices):
        if faces[device] >= size:  # most have nothing left, and a division takes long
            count += faces[device] // size
    return count


@compiled
def room_for(book: Words, row: int, count: int, cpu: int, memory: int) -> int:
    """How many of a class a node has room for, if its devices have so many of its size."""
    if book[row + CLASS_GPUS] > 1:
        count //= book[row + CLASS_GPUS]
    if count * book[row + CLASS_CPU] > cpu:
        count = cpu // book[row + CLASS_CPU]
    if count * book[row + CLASS_MEMORY] > memory:
        count = memory // book[row + CLASS_MEMORY]
    return count


@compiled
def loss(book: Words, query: Words, pool: int, before: int, after: int) -> int:
    """What a placement costs beyond its own worth: what the node is worth less, and the price of a flavor that others
    have to have. Rounded down in steps, so that among places that are nearly equal the lowest fills up first."""
    own = DEVICE * query[GPUS] if query[GPUS] else book[book[AT_VALUES] + query[MILLI]]
    price = book[flavor_at(book, pool) + FLAVOR_PRICE]
    cost = before - after - PARTS_OF_ONE * query[PATTERN] * own + 1000 * query[PRICE] * own * price
    return int(min(max(MIDDLE - cost // GRAIN, 0), 2 * MIDDLE))
