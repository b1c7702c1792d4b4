"""What arrives: reliability, history, durability, large samples."""

from case import (
    COLORS,
    DURABILITY,
    RELIABILITY,
    REPRESENTATIONS,
    case,
    expect,
    incompatible,
    lattice,
    numbered_from,
    rising,
    runs,
)

# How many readers come one after the other for a latched sample, and how soon after its match the fastest has it, and
# the slowest on a busy machine.
LATCHED_READERS, LATCHED_BEST_MS, LATCHED_WORST_MS = 8, 100, 500


@case("Reliability", REPRESENTATIONS, peers=True)
def best_effort(scene):
    subscriber = scene.subscriber("-b --read-period 10 -k 0")
    scene.publisher("-b -z 0 --write-period 10")
    subscriber.wait_samples(200)
    sizes = subscriber.sizes()
    rising(sizes, "subscriber")
    span = sizes[-1] - sizes[0] + 1
    expect(len(sizes) > span // 2, f"{len(sizes)} of {span} samples arrived on an idle network")


@case("Reliability", tags=("shares_memory",))
def by_the_transport_that_was_chosen(scene):
    """Two processes share memory where that is on, and nowhere else."""
    subscriber = scene.subscriber("-k 0")
    publisher = scene.publisher("-k 0 -z 0")
    subscriber.wait_samples(20)
    for application in (publisher, subscriber):
        is_on = application.environment["PLAINSONG_SHARED_MEMORY"] == "auto"
        count = application.shared_memories()
        expect(count >= 2 if is_on else count == 0, f"{application.label}: {count} segments are shared")


@case("Reliability", peers=True)
def reliable_to_best_effort(scene):
    subscriber = scene.subscriber("-b -k 0")
    scene.publisher("-r -z 0")
    subscriber.wait_samples(20)
    sizes = subscriber.sizes()
    rising(sizes, "subscriber")


@case("Reliability", REPRESENTATIONS, seconds=8, peers=True)
def reliable(scene):
    subscriber = scene.subscriber("-k 0 --read-period 10")
    scene.publisher("-k 0 -z 0 --write-period 5")
    subscriber.wait_samples(500)
    sizes = subscriber.sizes()
    numbered_from(sizes[0], sizes[-1], sizes, "subscriber")


@case("Reliability", REPRESENTATIONS, seconds=8, peers=True)
def reliable_instances(scene):
    subscriber = scene.subscriber("-k 0 --read-period 10")
    scene.publisher("-k 0 -z 0 --write-period 10 --num-instances 4")
    subscriber.wait_samples(800)
    expect({color for _, color, _, _ in subscriber.samples()} == set(COLORS), "colours differ")
    for color in COLORS:
        sizes = subscriber.sizes(color)
        numbered_from(sizes[0], sizes[-1], sizes, color)


@case("Reliability", peers=True)
def incompatible_reliability(scene):
    incompatible(scene, "-b", "-r", RELIABILITY)


@case("History", REPRESENTATIONS, peers=True)
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


@case("LargeData", REPRESENTATIONS, seconds=8, peers=True)
def large_100_kb(scene):
    exact(scene, 100_000, 50, 50, 30)


@case("LargeData", REPRESENTATIONS, seconds=15, peers=True)
def large_5_mb(scene):
    exact(scene, 5_000_000, 4, 500, 60)


@case("Durability", REPRESENTATIONS, seconds=6, peers=True)
def late_joiner_transient_local(scene):
    publisher = scene.publisher("-D l -k 0 -z 0 --write-period 20")
    publisher.wait_samples(50)
    subscriber = scene.subscriber("-D l -k 0 --read-period 20")
    subscriber.wait_samples(150)
    numbered_from(1, 150, subscriber.sizes()[:150], "late joiner")


@case("Durability", seconds=6, peers=True)
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


def no_past(scene, offered):
    """A volatile reader that comes late gets what is written from then on, all of it."""
    publisher = scene.publisher(f"{offered} -k 0 -z 0 --write-period 20")
    publisher.wait_samples(50)
    subscriber = scene.subscriber("-D v -k 0 --read-period 20")
    subscriber.wait_samples(50)
    sizes = subscriber.sizes()
    expect(sizes[0] > 50, f"an old sample came: {sizes[0]}")
    numbered_from(sizes[0], sizes[-1], sizes, "late joiner")


@case("Durability", seconds=6, peers=True)
def late_joiner_volatile(scene):
    no_past(scene, "-D v")


@case("Durability", peers=True)
def incompatible_durability(scene):
    incompatible(scene, "-D v", "-D l", DURABILITY)


def first_sample_after_match_ms(subscriber):
    """How long after its match a subscriber printed its first sample."""
    with_samples = lambda s: s.matched() and s.samples()
    subscriber.wait_until("match and a sample", with_samples)
    at = subscriber.first_times_seconds()
    return 1000 * (at["sample"] - at["match"])


@case("Durability", REPRESENTATIONS, seconds=8, peers=True)
def latched(scene):
    """One sample, written long before readers come: each has it as soon as it knows the writer. A writer that is not asked
    in a way that it answers tells only with its next periodic heartbeat, seconds later."""
    publisher = scene.publisher("-D l -k 1 -z 0 --write-period 60000")
    publisher.wait_samples(1)
    delays_ms = []
    for _ in range(LATCHED_READERS):
        subscriber = scene.subscriber("-D l -k 1 --read-period 5")
        delays_ms.append(first_sample_after_match_ms(subscriber))
        subscriber.interrupt()
    shown = ", ".join(f"{delay_ms:.0f}" for delay_ms in delays_ms)
    in_time = min(delays_ms) < LATCHED_BEST_MS and max(delays_ms) < LATCHED_WORST_MS
    expect(in_time, f"first samples {shown} ms after the match")


@case("Reliability", seconds=8)
def three_reliable_readers(scene):
    """Each of three readers gets all, also the one that looks seldom."""
    subscribers = [scene.subscriber(f"-D l -k 0 --read-period {ms}") for ms in (10, 50, 1000)]
    scene.publisher("-D l -k 0 -z 0 --write-period 5 --num-instances 2")
    colors = ("BLUE", "BLUE1")
    for subscriber in subscribers:
        # Of each: who looks seldom prints hundreds of one before the other.
        subscriber.wait_until("250 of each", lambda s: all(len(s.sizes(color)) >= 250 for color in colors))
        for color in colors:
            numbered_from(1, 250, subscriber.sizes(color)[:250], f"{subscriber.label} {color}")


@case("Reliability")
def best_effort_instances(scene):
    subscriber = scene.subscriber("-b -k 0 --read-period 20")
    scene.publisher("-b -z 0 --num-instances 4 --write-period 20")
    subscriber.wait_samples(200)
    for color in COLORS:
        expect(subscriber.sizes(color), f"no samples of {color}")
        rising(subscriber.sizes(color), color)


@case("History")
def keep_last_one(scene):
    """Depth 1, read seldom: each look shows the newest of every instance."""
    subscriber = scene.subscriber("-k 1 --read-period 700")
    publisher = scene.publisher("-k 1 -z 0 --write-period 20 --num-instances 2")
    subscriber.wait_samples(8)
    for color in ("BLUE", "BLUE1"):
        sizes = subscriber.sizes(color)
        rising(sizes, color)
        steps = [after - before for before, after in zip(sizes[1:], sizes[2:])]
        expect(all(step > 5 for step in steps), f"{color}: more than the depth was kept: {sizes}")
    expect(publisher.sizes("BLUE")[-1] >= subscriber.sizes("BLUE")[-1], "a sample of the future")


@case("History", seconds=8)
def keep_last_loses_nothing_in_time(scene):
    """A history that is deep enough for what comes between two looks loses nothing."""
    common = "-D l -k 60"
    subscriber = scene.subscriber(f"{common} --read-period 200")
    scene.publisher(f"{common} -z 0 --write-period 20 --num-instances 4")
    subscriber.wait_samples(600)
    for color in COLORS:
        sizes = subscriber.sizes(color)
        numbered_from(1, sizes[-1], sizes, color)


@case("LargeData", seconds=8)
def large_in_small_fragments(scene):
    """200 kB in fragments of 1300 octets."""
    common = "-D l -k 0"
    subscriber = scene.subscriber(f"{common} --read-period 20")
    scene.publisher(
        f"{common} -z 0 --additional-payload-size 200000 --datafrag-size 1300 --write-period 50"
    )
    subscriber.wait_samples(40, 30)
    samples = subscriber.samples()[:40]
    numbered_from(1, 40, [size for _, _, size, _ in samples], "subscriber")
    expect(all(last == 255 for *_, last in samples), "a last octet is not 255")


@case("LargeData")
def large_best_effort(scene):
    """Without repair: what arrives is whole and in order, and most of it arrives."""
    subscriber = scene.subscriber("-b -k 0 --read-period 20")
    scene.publisher("-b -z 0 --additional-payload-size 100000 --write-period 50")
    subscriber.wait_samples(30)
    samples = subscriber.samples()
    rising(subscriber.sizes(), "subscriber")
    expect(all(last == 255 for *_, last in samples), "a last octet is not 255")
    span = samples[-1][2] - samples[0][2] + 1
    expect(len(samples) > span // 2, f"{len(samples)} of {span} samples arrived")


@case("Durability", seconds=8)
def durability_lattice(scene):
    """Every kind offered, every kind requested: at least what is requested must be offered."""
    kinds = ["-D v", "-D l", "-D t", "-D p"]
    lattice(scene, kinds, kinds, lambda offer, request: offer >= request, DURABILITY)


@case("Durability", variants=("-D t", "-D p"), seconds=8)
def late_joiner_of_durable_data(scene):
    """TRANSIENT and PERSISTENT writers keep for late joiners what DURABILITY_SERVICE says: by
    default the newest sample of each instance. Nothing is lost after it."""
    publisher = scene.publisher("-k 0 -z 0 --write-period 3000 --num-instances 2")
    publisher.wait_samples(4)
    subscriber = scene.subscriber("-k 0 --read-period 20")
    subscriber.wait_samples(4)
    for color in ("BLUE", "BLUE1"):
        numbered_from(2, 3, subscriber.sizes(color)[:2], color)


@case("Durability", seconds=6)
def volatile_reader_of_a_durable_writer(scene):
    """The reader says whether it wants the past."""
    no_past(scene, "-D l")
