"""What a case is, and what cases share.

A case takes a Scene and raises Failure. Publishers grow the size by one a sample (`-z 0`), so
sizes number the samples: order, loss and duplicates show.
"""

import time

from application import Failure

REPRESENTATIONS = ("-x 1", "-x 2")
# The ids of policies (RTPS 2.5 §9.6.3, DCPS 1.4 §2.3.3).
DURABILITY, PRESENTATION, DEADLINE, OWNERSHIP, RELIABILITY, REPRESENTATION = 2, 3, 4, 6, 11, 23
# Plainsong's own.
CONSISTENCY = 1025
COLORS = ["BLUE", "BLUE1", "BLUE2", "BLUE3"]
# How soon a departure that was announced must be noticed.
FAREWELL_SECONDS = 3
# How long to watch for what must not happen.
QUIET_SECONDS = 3

# What cases are about, in the order of the table at the end: the groups of the OMG's tests, and
# five of ours: for participants that go, for a policy of Plainsong, for its tools, its recordings, and what it says of
# others.
GROUPS = (
    "Domain",
    "Topic",
    "Partition",
    "DataRepresentation",
    "Departure",
    "Reliability",
    "History",
    "LargeData",
    "Durability",
    "Ownership",
    "FinalInstanceState",
    "Deadline",
    "Lifespan",
    "TimeBasedFilter",
    "CoherentSets",
    "OrderedAccess",
    "Cft",
    "Consistency",
    "Tools",
    "Recording",
    "Doctor",
)
CASES = []


class Case:
    def __init__(self, group, play, variants, seconds, tags, peers, pairs):
        self.group = group
        self.name = play.__name__
        self.play = play
        self.variants = variants
        self.seconds = seconds
        self.tags = tags
        self.peers = peers
        self.pairs = pairs

    def title(self, variant=""):
        return f"{self.group}.{self.name} {variant}".rstrip()


def case(group, variants=("-x 1",), seconds=5, tags=(), peers=False, pairs=()):
    """Adds a function to the cases of a group. `variants` are options for both sides, `seconds` a
    usual duration, `tags` what a product may lack. Only with `peers` it is also for the peers; the
    others run Plainsong with itself alone. With `pairs` it is for these pairs of products alone, at
    which Plainsong looks from outside."""

    def add(play):
        if group not in GROUPS or any(other.name == play.__name__ for other in CASES):
            raise ValueError(f"no such group, or a second case: {group}.{play.__name__}")
        CASES.append(Case(group, play, variants, seconds, tags, peers, pairs))
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


def rising(sizes, who):
    """The sizes rise: nothing doubled or out of order."""
    expect(sizes == sorted(set(sizes)), f"{who}: samples doubled or out of order")


def runs(sizes):
    """Splits where a size is left out."""
    found = [sizes[:1]]
    for size in sizes[1:]:
        if size == found[-1][-1] + 1:
            found[-1].append(size)
        else:
            found.append([size])
    return found


def wait_sizes(subscriber, wanted):
    """Waits until samples of all the sizes came."""
    subscriber.wait_until(f"samples of {sorted(wanted)}", lambda s: set(wanted) <= set(s.sizes()))


def incompatible(scene, publisher_options, subscriber_options, policy):
    """The two do not match, and both say why."""
    subscriber = scene.subscriber(subscriber_options)
    publisher = scene.publisher(publisher_options)
    for end in (publisher, subscriber):
        end.wait_until("incompatible QoS", lambda e: e.incompatible() is not None)
        expect(end.incompatible() == policy, f"{end.label}: policy {end.incompatible()}")
    time.sleep(1)
    expect(not publisher.matched() and not subscriber.matched(), "they matched all the same")
    expect(not subscriber.samples(), "samples arrived all the same")


def lattice(scene, offers, requests, matches, policy):
    """Publishers and subscribers of one topic, one for each of the options: those match for which
    `matches(offer, request)` with the places in the lists; the others say that `policy` differs."""
    subscribers = [scene.subscriber(f"-k 0 {request}") for request in requests]
    publishers = [scene.publisher(f"-k 0 -z {10 + at} {offer}") for at, offer in enumerate(offers)]
    wanted = [
        {10 + offer for offer in range(len(offers)) if matches(offer, request)}
        for request in range(len(requests))
    ]
    for subscriber, sizes in zip(subscribers, wanted):
        wait_sizes(subscriber, sizes)
    time.sleep(1)
    for subscriber, sizes, request in zip(subscribers, wanted, requests):
        expect(set(subscriber.sizes()) == sizes, f"{request}: samples of {set(subscriber.sizes())}")
        missed = len(sizes) < len(offers)
        expect(subscriber.incompatible() == (policy if missed else None), f"{request}: policy")
    for at, publisher in enumerate(publishers):
        missed = any(10 + at not in sizes for sizes in wanted)
        expect(publisher.incompatible() == (policy if missed else None), f"{offers[at]}: policy")
