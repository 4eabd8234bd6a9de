"""The API's JSON of what might be: what a change would do at once, which is certain; and when a job will likely start,
and what a change would do in a day, which are guesses."""

from __future__ import annotations

from muster.wire.views import BookingView, JobView, Place, View, WhyView


class ForecastView(View, frozen=True):
    """When a waiting job will likely start, as of an entry; without a `latest_ms` it did not in every rollout, and
    without an `earliest_ms` in none. `after` are the jobs whose end it likely waits for, those that the reader may see,
    and `likes` how many ended jobs are like it. Without rollouts there is too much to run ahead, or nothing waits."""

    job: int
    seq: int
    as_of_ms: int
    rollouts: int = 0
    earliest_ms: int | None = None
    latest_ms: int | None = None
    after: list[int] = []
    likes: int = 0
    words: str = ""


class DayRow(View, frozen=True):
    """A tenant's day, without a change and with it: of so many jobs that wait or come, how many start, and how long
    they wait on the average."""

    tenant: str
    jobs: int
    started: tuple[int, int]
    wait_ms: tuple[int, int]


class DayView(View, frozen=True):
    """A day run ahead twice: how often somebody is stopped for others, and thousandths of device time held. `comers` is
    how many jobs of the last day were let come again."""

    tenants: list[DayRow]
    stops: tuple[int, int]
    held_milli: tuple[int, int]
    comers: int


class TrialJob(View, frozen=True):
    """A job that a change would touch, and how."""

    job: int
    tenant: str
    name: str = ""
    what: str = ""


class TrialView(View, frozen=True):
    """What a change would do at once, as of an entry: who starts, who is told to stop, who waits for another reason;
    and for a job, how it would stand, why it would wait, and what it would cost in an hour, in millionths. Of a move
    `places` is where the job would go on, of many the first; of other bounds `tasks` is how many it would have, and
    `booking` what would be booked."""

    seq: int
    job: JobView | None = None
    why: WhyView | None = None
    price_micros: int = 0
    starts: list[TrialJob] = []
    stops: list[TrialJob] = []
    waits: list[TrialJob] = []
    started: int = 0
    stopped: int = 0
    waiting: int = 0
    day: DayView | None = None
    places: list[Place] = []
    places_total: int = 0
    tasks: int = 0
    booking: BookingView | None = None
