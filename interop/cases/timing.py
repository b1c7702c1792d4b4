"""Policies about time: deadlines, lifespans, time-based filters."""

from case import DEADLINE, case, expect, incompatible, numbered_from, rising


@case("Deadline", peers=True)
def deadline_missed(scene):
    subscriber = scene.subscriber("-f 500")
    publisher = scene.publisher("-f 500 --write-period 1500")
    subscriber.wait_samples(1)
    for end in (publisher, subscriber):
        end.wait_until("missed deadline", lambda e: e.missed_deadlines() > 0)


@case("Deadline", peers=True)
def incompatible_deadline(scene):
    incompatible(scene, "-f 7000", "-f 5000", DEADLINE)


@case("Lifespan", seconds=7, peers=True)
def lifespan(scene):
    """A sample lives 200 ms, one is written every 100 ms, the reader looks every 500 ms."""
    subscriber = scene.subscriber("-k 0 --read-period 500")
    scene.publisher("-k 0 -z 0 --write-period 100 --lifespan 200")
    subscriber.wait_samples(12)
    sizes = subscriber.sizes()
    rising(sizes, "subscriber")
    gaps = sum(b - a > 1 for a, b in zip(sizes, sizes[1:]))
    expect(gaps >= 2, f"no sample expired: {sizes}")


@case("Deadline")
def deadline_kept(scene):
    """A writer that is faster than it promises, and promises more than is asked."""
    subscriber = scene.subscriber("-f 3000")
    publisher = scene.publisher("-f 2000 --write-period 100 --num-instances 2")
    subscriber.wait_samples(60)
    for end in (publisher, subscriber):
        expect(not end.missed_deadlines(), f"{end.label}: a deadline missed")


@case("Deadline")
def deadline_missed_again_and_again(scene):
    """Each period without a sample counts, on both sides."""
    subscriber = scene.subscriber("-D l -f 600")
    publisher = scene.publisher("-D l -f 300 --write-period 60000")
    subscriber.wait_samples(1)
    for end in (publisher, subscriber):
        end.wait_until("3 missed deadlines", lambda e: e.missed_deadlines() >= 3)
    expect(len(subscriber.samples()) == 1, "samples that nobody wrote")


@case("Lifespan", seconds=7)
def lifespan_of_instances(scene):
    """As `lifespan`, with two instances and best effort."""
    subscriber = scene.subscriber("-b -k 0 --read-period 500")
    scene.publisher("-b -z 0 --write-period 100 --lifespan 200 --num-instances 2")
    subscriber.wait_samples(24)
    for color in ("BLUE", "BLUE1"):
        sizes = subscriber.sizes(color)
        rising(sizes, color)
        gaps = sum(after - before > 1 for before, after in zip(sizes, sizes[1:]))
        expect(gaps >= 2, f"{color}: no sample expired: {sizes}")


@case("Lifespan")
def late_joiner_gets_nothing_expired(scene):
    """A durable writer keeps samples no longer than they live."""
    publisher = scene.publisher("-D l -k 0 -z 0 --write-period 50 --lifespan 1000")
    publisher.wait_samples(100)
    written = publisher.sizes()[-1]
    subscriber = scene.subscriber("-D l -k 0 --read-period 20")
    subscriber.wait_samples(40)
    sizes = subscriber.sizes()
    # 20 samples live at a time.
    expect(sizes[0] > written - 20, f"began at {sizes[0]}, written {written}")
    expect(sizes[0] <= written + 20, f"nothing of the past: began at {sizes[0]}, written {written}")
    numbered_from(sizes[0], sizes[-1], sizes, "late joiner")


def thinned(sizes, who):
    """One sample of about ten: written every 50 ms, wanted every 500 ms. Load moves single ones."""
    rising(sizes, who)
    # What a reader missed while the two got to know each other is repeated at once, and thinned out to one.
    settled = sizes[1:]
    steps = [after - before for before, after in zip(settled, settled[1:])]
    mean = sum(steps) / len(steps)
    expect(5 <= mean <= 14 and min(steps) > 1, f"{who}: not one in ten: {sizes}")


@case("TimeBasedFilter", seconds=7, tags=("time_filter",), peers=True)
def time_filter(scene):
    subscriber = scene.subscriber("-k 0 --time-filter 500 --read-period 20")
    scene.publisher("-k 0 -z 0 --write-period 50")
    subscriber.wait_samples(9)
    thinned(subscriber.sizes(), "subscriber")


@case("TimeBasedFilter", seconds=7)
def time_filter_of_instances(scene):
    """Each instance has a time of its own; another reader of the same writer gets all."""
    subscriber = scene.subscriber("-k 0 --time-filter 500 --read-period 20")
    everything = scene.subscriber("-k 0 --read-period 20")
    scene.publisher("-k 0 -z 0 --write-period 50 --num-instances 3")
    colors = ("BLUE", "BLUE1", "BLUE2")
    subscriber.wait_until("8 samples each", lambda s: all(len(s.sizes(c)) >= 8 for c in colors))
    for color in colors:
        thinned(subscriber.sizes(color), color)
        sizes = everything.sizes(color)
        numbered_from(sizes[0], sizes[-1], sizes, f"unfiltered {color}")


@case("TimeBasedFilter")
def time_filter_shorter_than_the_period(scene):
    """Samples that are far enough from each other all pass."""
    subscriber = scene.subscriber("-D l -k 0 --time-filter 50 --read-period 20")
    scene.publisher("-D l -k 0 -z 0 --write-period 300")
    subscriber.wait_samples(10)
    numbered_from(1, 10, subscriber.sizes()[:10], "subscriber")


@case("TimeBasedFilter")
def time_filter_shows_the_last(scene):
    """When the writer falls silent, its last sample is shown however soon it followed another."""
    subscriber = scene.subscriber("-D l -k 0 --time-filter 2000 --read-period 20")
    scene.publisher("-D l -k 0 -z 0 --write-period 40 --num-iterations 10")
    subscriber.wait_until("the last sample", lambda s: 10 in s.sizes())
    sizes = subscriber.sizes()
    expect(sizes[0] == 1 and len(sizes) == 2, f"first and last, but {sizes}")
