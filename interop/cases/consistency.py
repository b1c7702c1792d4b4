"""CONSISTENCY: an ATOMIC topic, and readers and writers of others on it, whose consistency is EVENTUAL."""

import os
import time

from case import CONSISTENCY, QUIET_SECONDS, case, expect, incompatible, numbered_from, runs

ATOMIC = "-r -k 0 -D l --consistency atomic"
# How long a writer of others writes beside an ATOMIC reader.
BESIDE_SECONDS = float(os.environ.get("INTEROP_BESIDE_SECONDS", "6"))
# The writers, by the colour that each writes.
WRITERS = ("RED", "BLUE")


class Stage:
    """Two ATOMIC readers and two ATOMIC writers of one product, and an EVENTUAL reader of the other."""

    def __init__(self, scene, more):
        self.outside = scene.subscriber("-r -k 0 -D l --read-period 5")
        self.inside = []
        # The first makes the group: two that are made at once would be two until they meet.
        for _ in range(2):
            reader = scene.beside(f"{ATOMIC} -v d --take-read --read-period 5")
            reader.wait_until("group", lambda r: any("Installed" in text for text in r.texts()))
            self.inside.append(reader)
        self.writers = [scene.publisher(f"{ATOMIC} -z 0 -c {color} {more}") for color in WRITERS]

    def wait_for_all(self, color, size):
        for reader in [self.outside, *self.inside]:
            reader.wait_until(f"{color} {size}", lambda r: max(r.sizes(color), default=0) >= size)

    def agreed(self):
        """What the ATOMIC readers have, in the agreed order: all the same, and of each writer in its order."""
        orders = [[(color, size) for _, color, size, _ in reader.samples()] for reader in self.inside]
        for at, (first, second) in enumerate(zip(*orders)):
            expect(first == second, f"sample {at}: one ATOMIC reader has {first}, the other {second}")
        lengths = [len(order) for order in orders]
        expect(lengths[0] == lengths[1], f"one ATOMIC reader has {lengths[0]} samples, the other {lengths[1]}")
        of_writer = {color: [size for found, size in orders[0] if found == color] for color in WRITERS}
        for color, sizes in of_writer.items():
            numbered_from(1, len(sizes), sizes, f"the agreed order, {color}")
        return of_writer


@case("Consistency", seconds=8, tags=("atomic_writer",), peers=True)
def eventual_reader_of_atomic_writers(scene):
    """It has what the ATOMIC readers have, all of it, and of each writer in its order."""
    stage = Stage(scene, "--write-period 10")
    for color in WRITERS:
        stage.wait_for_all(color, 200)
    for writer in stage.writers:
        writer.interrupt()
    for color, writer in zip(WRITERS, stage.writers):
        stage.wait_for_all(color, writer.sizes()[-1])
    time.sleep(1)
    for color, agreed in stage.agreed().items():
        shown = stage.outside.sizes(color)
        expect(shown == agreed, f"{color}: shows {brief(shown)}, agreed is {brief(agreed)}")


@case("Consistency", seconds=12, tags=("atomic_writer",), peers=True)
def eventual_reader_when_an_atomic_writer_is_killed(scene):
    """Of what was on its way the EVENTUAL reader has nothing that the ATOMIC readers have not."""
    stage = Stage(scene, "--write-period 1 --additional-payload-size 8000")
    for color in WRITERS:
        stage.wait_for_all(color, 100)
    killed, other = stage.writers
    # Nothing is agreed while the others do not run, and not everything that is written now finds room in
    # their sockets.
    stopped = [other, *stage.inside]
    for application in stopped:
        application.stop()
    quiet(stage.outside)
    expect(len(killed.sizes()) > len(stage.outside.sizes("RED")), "nothing was on its way")
    killed.kill()
    for application in stopped:
        application.go_on()
    stage.wait_for_all("BLUE", max(other.sizes()) + 100)
    other.interrupt()
    last = other.sizes()[-1]
    stage.wait_for_all("BLUE", last)
    time.sleep(1)
    agreed = stage.agreed()
    shown = stage.outside.sizes("RED")
    expect(
        shown == agreed["RED"][: len(shown)], f"shows RED {brief(shown)}, agreed is {brief(agreed['RED'])}"
    )
    numbered_from(1, last, stage.outside.sizes("BLUE"), "of the writer that lives")


def quiet(application):
    """Waits until it shows nothing new any more."""
    end, count = time.monotonic() + QUIET_SECONDS * 3, None
    while count != len(application.samples()):
        expect(time.monotonic() < end, f"{application.label} shows ever more, and nobody is there to agree")
        count = len(application.samples())
        time.sleep(0.5)


def brief(sizes):
    return [f"{run[0]}..{run[-1]}" for run in runs(sizes)] if sizes else []


@case("Consistency", seconds=10 + BESIDE_SECONDS, tags=("atomic_reader",), peers=True)
def eventual_writer_beside_an_atomic_reader(scene):
    """A reliable writer that keeps all is not held up by an ATOMIC reader: it is told of none."""
    atomic = scene.subscriber("-r -k 0 --consistency atomic")
    beside = scene.beside("-r -k 0 --read-period 5")
    # 1,000 samples a second and more, since sleeping takes longer than asked for.
    writer = scene.publisher("-r -k 0 -z 0 --num-instances 4 --write-period 2 --additional-payload-size 200")
    atomic.wait_until("incompatible QoS", lambda a: a.incompatible() is not None)
    begin, before = time.monotonic(), len(writer.sizes())
    time.sleep(BESIDE_SECONDS)
    rate = (len(writer.sizes()) - before) / (time.monotonic() - begin)
    scene.note(f"{rate:.0f} samples/s")
    expect(rate > 300, f"the writer wrote {rate:.0f} samples a second")
    writer.interrupt()
    last = writer.sizes()[-1]
    beside.wait_until(f"size {last}", lambda b: last in b.sizes()[-4:])
    sizes = beside.sizes("BLUE")
    numbered_from(sizes[0], last, sizes, "the EVENTUAL reader")
    expect(atomic.incompatible() == CONSISTENCY, f"policy {atomic.incompatible()}")
    expect(not atomic.matched() and not atomic.samples(), "the ATOMIC reader matched")
    pause = writer.longest_pause_seconds()
    expect(pause < 2, f"the writer wrote nothing for {pause:.1f} s")


@case("Consistency", tags=("atomic_writer", "atomic_reader"))
def atomic_reader_of_an_eventual_writer(scene):
    """Both of Plainsong: both are told why they do not match."""
    incompatible(scene, "-r -k 0", "-r -k 0 --consistency atomic", CONSISTENCY)
