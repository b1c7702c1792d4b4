"""Who owns an instance, and how it ends."""

import time

from case import (
    COLORS,
    FAREWELL_SECONDS,
    OWNERSHIP,
    REPRESENTATIONS,
    case,
    expect,
    incompatible,
    wait_sizes,
)


@case("Ownership", seconds=7, peers=True)
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


@case("Ownership", peers=True)
def incompatible_ownership(scene):
    incompatible(scene, "-s -1", "-s 3", OWNERSHIP)


def final_state(scene, letter, state):
    subscriber = scene.subscriber("-k 0 --read-period 20")
    publisher = scene.publisher(
        "-k 0 -z 0 --num-instances 4 --num-iterations 8 --write-period 400 "
        f"--final-instance-state {letter}"
    )
    wanted = dict.fromkeys(COLORS, state)
    subscriber.wait_until(f"{wanted}", lambda s: s.ends() == wanted)
    publisher.wait_end()
    for color in COLORS:
        sizes = subscriber.sizes(color)
        expect(sizes and sizes[-1] == 8, f"{color}: the last sample is missing: {sizes}")


@case("FinalInstanceState", REPRESENTATIONS, seconds=7, tags=("final",), peers=True)
def dispose(scene):
    final_state(scene, "d", "DISPOSED")


@case("FinalInstanceState", REPRESENTATIONS, seconds=7, tags=("final",), peers=True)
def unregister(scene):
    final_state(scene, "u", "NO_WRITERS")


@case("FinalInstanceState", tags=("farewell", "no_writers"), peers=True)
def writer_is_deleted(scene):
    subscriber = scene.subscriber("-k 0 --read-period 20")
    publisher = scene.publisher("-k 0 --num-instances 4 --num-iterations 8 --write-period 400")
    publisher.wait_end(30)
    wanted = dict.fromkeys(COLORS, "NO_WRITERS")
    subscriber.wait_until(f"{wanted}", lambda s: s.ends() == wanted, FAREWELL_SECONDS)


@case("Ownership")
def incompatible_ownership_the_other_way(scene):
    incompatible(scene, "-s 3", "-s -1", OWNERSHIP)


@case("Ownership")
def shared_ownership(scene):
    """Two writers of one instance: the reader goes on seeing both."""
    subscriber = scene.subscriber("-k 0 --read-period 20")
    scene.publisher("-z 20")
    scene.publisher("-z 30")
    subscriber.wait_matched(2)
    wait_sizes(subscriber, {20, 30})
    seen = len(subscriber.sizes())
    subscriber.wait_samples(seen + 40)
    expect(set(subscriber.sizes()[seen:]) == {20, 30}, "one of the two was heard no more")


@case("Ownership")
def ownership_is_of_instances(scene):
    """The stronger writer owns what it writes, the weaker one the rest."""
    subscriber = scene.subscriber("-s 0 -k 0 --read-period 20")
    scene.publisher("-s 1 -z 20 --num-instances 2")
    scene.publisher("-s 9 -z 30")
    subscriber.wait_matched(2)
    wait_sizes(subscriber, {20, 30})
    time.sleep(1)
    seen = len(subscriber.sizes())
    subscriber.wait_samples(seen + 40)
    owners = {(color, size) for _, color, size, _ in subscriber.samples()[seen:]}
    expect(owners == {("BLUE", 30), ("BLUE1", 20)}, f"samples of {sorted(owners)}")


@case("Ownership")
def ownership_passes_on_when_the_owner_leaves(scene):
    subscriber = scene.subscriber("-s 0 -k 0 --read-period 20")
    scene.publisher("-s 1 -z 20")
    owner = scene.publisher("-s 9 -z 30")
    subscriber.wait_matched(2)
    wait_sizes(subscriber, {30})
    owner.interrupt()
    subscriber.wait_matched(1)
    seen = len(subscriber.sizes())
    subscriber.wait_samples(seen + 20, FAREWELL_SECONDS)
    expect(set(subscriber.sizes()[seen + 5 :]) == {20}, "the weaker writer was not heard")


@case("Ownership")
def ownership_passes_on_when_the_owner_is_late(scene):
    """An owner that is stopped misses its deadline long before its lease ends."""
    subscriber = scene.subscriber("-s 0 -k 0 -f 1000 --read-period 20")
    scene.publisher("-s 1 -z 20 -f 1000")
    owner = scene.publisher("-s 9 -z 30 -f 1000")
    subscriber.wait_matched(2)
    wait_sizes(subscriber, {30})
    time.sleep(1)
    owner.stop()
    seen = len(subscriber.sizes())
    subscriber.wait_until("samples of the weaker", lambda s: 20 in s.sizes()[seen:], 5)
    expect(subscriber.matched() == 2, "the lease ended first")


@case("FinalInstanceState", seconds=7)
def instance_lives_again(scene):
    """A disposed instance that another writer writes."""
    subscriber = scene.subscriber("-k 0 --read-period 20")
    scene.publisher("-k 0 -z 7 --num-iterations 8 --write-period 200 --final-instance-state d")
    subscriber.wait_until("the end", lambda s: s.ends() == {"BLUE": "DISPOSED"})
    scene.publisher("-k 0 -z 8 --num-iterations 8 --write-period 200 --final-instance-state u")
    wait_sizes(subscriber, {7, 8})
    subscriber.wait_until("another end", lambda s: s.ends() == {"BLUE": "NO_WRITERS"})
    expect(subscriber.sizes() == sorted(subscriber.sizes()), "a sample of the first writer at last")


@case("FinalInstanceState", seconds=7)
def other_writer_keeps_the_instance(scene):
    """An instance has no writers only when the last one has left it."""
    subscriber = scene.subscriber("-k 0 --read-period 20")
    staying = scene.publisher("-k 0 -z 7")
    leaving = scene.publisher("-k 0 -z 8 --num-iterations 20 --final-instance-state u")
    wait_sizes(subscriber, {7, 8})
    leaving.wait_end()
    subscriber.wait_matched(1)
    time.sleep(1)
    expect(not subscriber.ends(), f"one of two writers left: {subscriber.ends()}")
    staying.interrupt()
    subscriber.wait_until("the end", lambda s: s.ends() == {"BLUE": "NO_WRITERS"}, FAREWELL_SECONDS)


@case("FinalInstanceState", seconds=7)
def ends_of_many_topics(scene):
    subscriber = scene.subscriber("-k 0 --num-topics 2 --read-period 20")
    scene.publisher(
        "-k 0 -z 0 --num-topics 2 --num-instances 2 --num-iterations 8 --write-period 200 "
        "--final-instance-state d"
    )
    instances = {(topic, color) for topic in ("Square", "Square1") for color in ("BLUE", "BLUE1")}
    wanted = dict.fromkeys(instances, "DISPOSED")
    subscriber.wait_until("all ends", lambda s: s.ends_of_topics() == wanted)
