"""The cases: how two shapes applications are driven, and what they must print.

A case takes a Scene and raises Failure. Publishers grow the size by one a sample (`-z 0`), so
sizes number the samples: order, loss and duplicates show.
"""

import time

from application import LEASE_SECONDS, Failure

RELIABILITY, DURABILITY, DEADLINE, OWNERSHIP, REPRESENTATION = 11, 2, 4, 6, 23
REPRESENTATIONS = ("-x 1", "-x 2")
FOUR_COLORS = {"BLUE", "BLUE1", "BLUE2", "BLUE3"}
# How soon a departure that was announced must be noticed.
FAREWELL_SECONDS = 3
# How long to watch for what must not happen.
QUIET_SECONDS = 3

CASES = []


class Case:
    def __init__(self, play, variants, seconds, tags):
        self.name = play.__name__
        self.play = play
        self.variants = variants
        self.seconds = seconds
        self.tags = tags


def case(variants=("-x 1",), seconds=5, tags=()):
    """Adds a function to the cases. `variants` are options for both sides, `seconds` a usual
    duration, `tags` what a product may lack."""

    def add(play):
        CASES.append(Case(play, variants, seconds, tags))
        return play

    return add


def by_name(name):
    return next(case for case in CASES if case.name == name)


def expect(condition, message):
    if not condition:
        raise Failure(message)


def numbered_from(first, last, sizes, who):
    """The sizes are first, first+1, ..., last: nothing lost, doubled or out of order."""
    expected = list(range(first, last + 1))
    if sizes == expected:
        return
    missing = sorted(set(expected) - set(sizes))[:10]
    doubled = sorted({size for size in sizes if sizes.count(size) > 1})[:10]
    ordered = sizes == sorted(sizes)
    raise Failure(
        f"{who}: wants {first}..{last}, has {len(sizes)} samples; missing {missing}, "
        f"doubled {doubled}, {'in' if ordered else 'out of'} order"
    )


# Discovery


@case(REPRESENTATIONS)
def match_and_part(scene):
    subscriber = scene.subscriber("-t Circle")
    publisher = scene.publisher("-t Circle -z 0")
    for end in (publisher, subscriber):
        end.wait_matched(1)
    subscriber.wait_samples(3)
    topic, color, _, _ = subscriber.samples()[0]
    expect((topic, color) == ("Circle", "BLUE"), f"sample of {topic}, {color}")
    names = "topic: 'Circle'  type: 'ShapeType'"
    for end in (publisher, subscriber):
        lines = [text for text in end.texts() if "_matched()" in text]
        expect(all(names in line for line in lines), f"{end.label}: {lines[0]}")


@case()
def other_topics_do_not_match(scene):
    subscriber = scene.subscriber("-t Square")
    publisher = scene.publisher("-t Circle")
    time.sleep(QUIET_SECONDS)
    expect(not publisher.matched() and not subscriber.matched(), "different topics matched")


@case()
def domain_one_is_not_domain_zero(scene):
    stranger = scene.subscriber("-d 0")
    subscriber = scene.subscriber("-d 1")
    scene.publisher("-d 1")
    subscriber.wait_samples(10)
    expect(stranger.matched() is None, "a reader of domain 0 matched a writer of domain 1")


@case(tags=("farewell",))
def publisher_leaves(scene):
    subscriber = scene.subscriber("")
    publisher = scene.publisher("")
    subscriber.wait_samples(5)
    publisher.interrupt()
    subscriber.wait_matched(0, FAREWELL_SECONDS)


@case(tags=("farewell",))
def subscriber_leaves(scene):
    subscriber = scene.subscriber("")
    publisher = scene.publisher("")
    subscriber.wait_samples(5)
    publisher.wait_matched(1)
    subscriber.interrupt()
    publisher.wait_matched(0, FAREWELL_SECONDS)


@case(seconds=25, tags=("killed",))
def publisher_is_killed(scene):
    subscriber = scene.subscriber("")
    publisher = scene.publisher("--num-instances 2")
    subscriber.wait_samples(6)
    publisher.kill()
    subscriber.wait_matched(0, LEASE_SECONDS)
    if not scene.subscriber_can("no_writers"):
        return
    wanted = dict.fromkeys(("BLUE", "BLUE1"), "NO_WRITERS")
    subscriber.wait_until(f"{wanted}", lambda s: s.ends() == wanted)


@case(seconds=8)
def publisher_comes_back(scene):
    subscriber = scene.subscriber("-k 0")
    first = scene.publisher("-z 10")
    subscriber.wait_until("samples of the first", lambda s: 10 in s.sizes())
    first.kill()
    second = scene.publisher("-z 11")
    subscriber.wait_until("samples of the second", lambda s: 11 in s.sizes())
    second.wait_matched(1)


# Reliability


@case(REPRESENTATIONS)
def best_effort(scene):
    subscriber = scene.subscriber("-b --read-period 10 -k 0")
    scene.publisher("-b -z 0 --write-period 10")
    subscriber.wait_samples(200)
    sizes = subscriber.sizes()
    expect(sizes == sorted(set(sizes)), "samples doubled or out of order")
    span = sizes[-1] - sizes[0] + 1
    expect(len(sizes) > span // 2, f"{len(sizes)} of {span} samples arrived on an idle network")


@case()
def reliable_to_best_effort(scene):
    subscriber = scene.subscriber("-b -k 0")
    scene.publisher("-r -z 0")
    subscriber.wait_samples(20)
    sizes = subscriber.sizes()
    expect(sizes == sorted(set(sizes)), "samples doubled or out of order")


@case(REPRESENTATIONS, seconds=8)
def reliable(scene):
    subscriber = scene.subscriber("-k 0 --read-period 10")
    scene.publisher("-k 0 -z 0 --write-period 5")
    subscriber.wait_samples(500)
    sizes = subscriber.sizes()
    numbered_from(sizes[0], sizes[-1], sizes, "subscriber")


@case(REPRESENTATIONS, seconds=8)
def reliable_instances(scene):
    subscriber = scene.subscriber("-k 0 --read-period 10")
    scene.publisher("-k 0 -z 0 --write-period 10 --num-instances 4")
    subscriber.wait_samples(800)
    expect({color for _, color, _, _ in subscriber.samples()} == FOUR_COLORS, "colours differ")
    for color in sorted(FOUR_COLORS):
        sizes = subscriber.sizes(color)
        numbered_from(sizes[0], sizes[-1], sizes, color)


@case(REPRESENTATIONS)
def keep_last_depth(scene):
    """Read seldom with depth 3: each instance keeps its latest three."""
    subscriber = scene.subscriber("-k 3 --read-period 1000")
    scene.publisher("-k 3 -z 0 --write-period 20 --num-instances 2")
    subscriber.wait_samples(18)
    for color in ("BLUE", "BLUE1"):
        # The first run may be of a reader just matched, the last one is still being printed; one
        # more sample can come while the subscriber reads.
        found = runs(subscriber.sizes(color))
        expect(len(found) >= 3, f"{color}: more than the depth was kept: {found}")
        for run in found[1:-1]:
            expect(len(run) in (3, 4), f"{color}: at once {run}, depth 3")


def runs(sizes):
    """Splits where a size is left out."""
    found = [sizes[:1]]
    for size in sizes[1:]:
        if size == found[-1][-1] + 1:
            found[-1].append(size)
        else:
            found.append([size])
    return found


# Large samples


def exact(scene, payload_size, count, period_ms, seconds):
    """A durable, reliable writer: every sample arrives, whenever the reader matched."""
    common = "-D l -k 0"
    subscriber = scene.subscriber(f"{common} --read-period 20")
    scene.publisher(
        f"{common} -z 0 --additional-payload-size {payload_size} --write-period {period_ms}"
    )
    subscriber.wait_samples(count, seconds)
    samples = subscriber.samples()[:count]
    numbered_from(1, count, [size for _, _, size, _ in samples], "subscriber")
    wrong = [last for _, _, _, last in samples if last != 255]
    expect(not wrong, f"last octet {wrong[:3]}, not 255")


@case(REPRESENTATIONS, seconds=8)
def large_100_kb(scene):
    exact(scene, 100_000, 50, 50, 30)


@case(REPRESENTATIONS, seconds=15)
def large_5_mb(scene):
    exact(scene, 5_000_000, 4, 500, 60)


# Instances


def final_state(scene, letter, state):
    subscriber = scene.subscriber("-k 0 --read-period 20")
    publisher = scene.publisher(
        "-k 0 -z 0 --num-instances 4 --num-iterations 8 --write-period 400 "
        f"--final-instance-state {letter}"
    )
    wanted = dict.fromkeys(FOUR_COLORS, state)
    subscriber.wait_until(f"{wanted}", lambda s: s.ends() == wanted)
    publisher.wait_end()
    for color in sorted(FOUR_COLORS):
        sizes = subscriber.sizes(color)
        expect(sizes and sizes[-1] == 8, f"{color}: the last sample is missing: {sizes}")


@case(REPRESENTATIONS, seconds=7, tags=("final",))
def dispose(scene):
    final_state(scene, "d", "DISPOSED")


@case(REPRESENTATIONS, seconds=7, tags=("final",))
def unregister(scene):
    final_state(scene, "u", "NO_WRITERS")


@case(tags=("farewell", "no_writers"))
def writer_is_deleted(scene):
    subscriber = scene.subscriber("-k 0 --read-period 20")
    publisher = scene.publisher("-k 0 --num-instances 4 --num-iterations 8 --write-period 400")
    publisher.wait_end(30)
    wanted = dict.fromkeys(FOUR_COLORS, "NO_WRITERS")
    subscriber.wait_until(f"{wanted}", lambda s: s.ends() == wanted, FAREWELL_SECONDS)


# Durability


@case(REPRESENTATIONS, seconds=6)
def late_joiner_transient_local(scene):
    publisher = scene.publisher("-D l -k 0 -z 0 --write-period 20")
    publisher.wait_samples(50)
    subscriber = scene.subscriber("-D l -k 0 --read-period 20")
    subscriber.wait_samples(150)
    numbered_from(1, 150, subscriber.sizes()[:150], "late joiner")


@case(seconds=6)
def late_joiner_keep_last(scene):
    publisher = scene.publisher("-D l -k 5 -z 0 --write-period 20 --num-instances 2")
    publisher.wait_samples(100)
    written = publisher.sizes("BLUE")[-1]
    subscriber = scene.subscriber("-D l -k 0 --read-period 20")
    subscriber.wait_samples(60)
    for color in ("BLUE", "BLUE1"):
        sizes = subscriber.sizes(color)
        expect(sizes[0] > written - 5, f"{color}: began at {sizes[0]}, written {written}, depth 5")
        numbered_from(sizes[0], sizes[-1], sizes, color)


@case(seconds=6)
def late_joiner_volatile(scene):
    publisher = scene.publisher("-D v -k 0 -z 0 --write-period 20")
    publisher.wait_samples(50)
    subscriber = scene.subscriber("-D v -k 0 --read-period 20")
    subscriber.wait_samples(50)
    sizes = subscriber.sizes()
    expect(sizes[0] > 50, f"an old sample came: {sizes[0]}")
    numbered_from(sizes[0], sizes[-1], sizes, "late joiner")


# Content filters


@case(REPRESENTATIONS, seconds=6, tags=("expression",))
def content_filter(scene):
    subscriber = scene.subscriber("-k 0 -D l --read-period 20 --cft 'shapesize <= 20'")
    publisher = scene.publisher("-k 0 -D l -z 0 --write-period 20")
    publisher.wait_matched(1)
    publisher.wait_samples(100)
    subscriber.wait_samples(20)
    time.sleep(1)
    numbered_from(1, 20, subscriber.sizes(), "subscriber")


@case(REPRESENTATIONS, seconds=6, tags=("expression",))
def content_filter_of_a_late_joiner(scene):
    publisher = scene.publisher("-k 0 -D l -z 0 --write-period 20")
    publisher.wait_samples(50)
    subscriber = scene.subscriber(
        "-k 0 -D l --read-period 20 --cft 'shapesize BETWEEN 11 AND 20 OR shapesize >= 101'"
    )
    subscriber.wait_samples(60)
    sizes = subscriber.sizes()[:60]
    numbered_from(11, 20, sizes[:10], "of the history")
    numbered_from(101, 150, sizes[10:], "of what was written since")


@case(REPRESENTATIONS, seconds=7, tags=("expression", "final", "filtered_end"))
def content_filter_on_the_key(scene):
    subscriber = scene.subscriber("-k 0 --read-period 20 --cft \"color = 'BLUE1' OR color = 'BLUE2'\"")
    publisher = scene.publisher(
        "-k 0 -z 0 --num-instances 4 --num-iterations 8 --write-period 400 --final-instance-state d"
    )
    wanted = dict.fromkeys(("BLUE1", "BLUE2"), "DISPOSED")
    subscriber.wait_until(f"{wanted}", lambda s: s.ends() == wanted)
    publisher.wait_end()
    expect({color for _, color, _, _ in subscriber.samples()} == set(wanted), "other colours came")


# Quality of service


def incompatible(scene, publisher_options, subscriber_options, policy):
    subscriber = scene.subscriber(subscriber_options)
    publisher = scene.publisher(publisher_options)
    for end in (publisher, subscriber):
        end.wait_until("incompatible QoS", lambda e: e.incompatible() is not None)
        expect(end.incompatible() == policy, f"{end.label}: policy {end.incompatible()}")
    time.sleep(1)
    expect(not publisher.matched() and not subscriber.matched(), "they matched all the same")
    expect(not subscriber.samples(), "samples arrived all the same")


@case()
def incompatible_reliability(scene):
    incompatible(scene, "-b", "-r", RELIABILITY)


@case()
def incompatible_durability(scene):
    incompatible(scene, "-D v", "-D l", DURABILITY)


@case()
def incompatible_deadline(scene):
    incompatible(scene, "-f 7000", "-f 5000", DEADLINE)


@case()
def incompatible_ownership(scene):
    incompatible(scene, "-s -1", "-s 3", OWNERSHIP)


@case(variants=("",), tags=("representation",))
def incompatible_representation_1_to_2(scene):
    incompatible(scene, "-x 1", "-x 2", REPRESENTATION)


@case(variants=("",), tags=("representation",))
def incompatible_representation_2_to_1(scene):
    incompatible(scene, "-x 2", "-x 1", REPRESENTATION)


@case()
def deadline_missed(scene):
    subscriber = scene.subscriber("-f 500")
    publisher = scene.publisher("-f 500 --write-period 1500")
    subscriber.wait_samples(1)
    for end in (publisher, subscriber):
        end.wait_until("missed deadline", lambda e: e.missed_deadline())


@case(seconds=7)
def partitions(scene):
    alike = scene.subscriber("-p p1")
    pattern = scene.subscriber("-p p*")
    other = scene.subscriber("-p q1")
    scene.publisher("-p p1")
    alike.wait_samples(5)
    pattern.wait_samples(5)
    time.sleep(1)
    expect(not other.matched() and not other.samples(), "partition q1 met partition p1")


@case(seconds=7)
def exclusive_ownership(scene):
    """Two writers of one instance: the reader ends up with the stronger one alone."""
    subscriber = scene.subscriber("-s 0 -k 0 --read-period 20")
    scene.publisher("-s 3 -z 20")
    scene.publisher("-s 4 -z 30")
    subscriber.wait_matched(2)
    subscriber.wait_until("samples of the stronger", lambda s: 30 in s.sizes())
    time.sleep(1)
    seen = len(subscriber.sizes())
    subscriber.wait_samples(seen + 20)
    owners = set(subscriber.sizes()[seen:])
    expect(owners == {30}, f"after the stronger writer came, samples of {sorted(owners)}")


@case(seconds=7)
def lifespan(scene):
    """A sample lives 200 ms, one is written every 100 ms, the reader looks every 500 ms."""
    subscriber = scene.subscriber("-k 0 --read-period 500")
    scene.publisher("-k 0 -z 0 --write-period 100 --lifespan 200")
    subscriber.wait_samples(12)
    sizes = subscriber.sizes()
    expect(sizes == sorted(set(sizes)), "samples doubled or out of order")
    gaps = sum(b - a > 1 for a, b in zip(sizes, sizes[1:]))
    expect(gaps >= 2, f"no sample expired: {sizes}")
