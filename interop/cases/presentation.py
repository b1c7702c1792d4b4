"""PRESENTATION: coherent sets are shown whole or not at all, ordered access as it was written.

Both need the accesses of the subscriber told apart: `Application.accesses`. Sets have three samples
of every instance unless said otherwise: sizes 1 to 3, 4 to 6 and so on.
"""

import time

from case import (
    COLORS,
    PRESENTATION,
    QUIET_SECONDS,
    case,
    expect,
    lattice,
    numbered_from,
)

SET = 3
TOPICS = ["Square", "Square1", "Square2"]
MANY = "-k 0 -z 0 --num-topics 3 --num-instances 4"


def writes(scene, scope, more):
    """A publisher of coherent sets."""
    return scene.publisher(
        f"-k 0 -z 0 --coherent --access-scope {scope} --coherent-sample-count {SET} {more}"
    )


def reads(scene, scope, more):
    """A subscriber with coherent access."""
    return scene.subscriber(
        f"-k 0 --coherent --access-scope {scope} --take-read --read-period 50 {more}"
    )


def whole_sets(accesses, scope):
    """What each access shows are whole sets: of each instance of each topic; of INSTANCE scope one
    by one, of TOPIC scope the same sets of all instances, of GROUP scope of all topics too."""
    for at, samples in enumerate(accesses):
        shown = {}
        for topic, color, size in samples:
            shown.setdefault((topic, color), []).append(size)
        for (topic, color), sizes in shown.items():
            ok = len(sizes) % SET == 0 and sizes[0] % SET == 1
            consecutive = sizes == list(range(sizes[0], sizes[0] + len(sizes)))
            expect(ok and consecutive, f"access {at}: no whole sets of {topic} {color}: {sizes}")
        units = [list(shown.items())]
        if scope == "i":
            continue
        if scope == "t":
            units = [[item for item in shown.items() if item[0][0] == topic] for topic in TOPICS]
        for unit in units:
            expect(
                all(sizes == unit[0][1] for _, sizes in unit),
                f"access {at}: not the same sets of all in scope {scope}: {shown}",
            )
            colors = {color for (_, color), _ in unit}
            expect(len(colors) in (0, len(COLORS)), f"access {at}: instances missing: {shown}")
        expect(scope != "g" or len(shown) == 12, f"access {at}: topics missing: {shown}")


def sets_arrive(scene, scope, durability=""):
    subscriber = reads(scene, scope, f"--num-topics 3 {durability}")
    writes(scene, scope, f"--num-topics 3 --num-instances 4 --write-period 40 {durability}")
    subscriber.wait_accesses(10)
    accesses = subscriber.accesses()
    whole_sets(accesses, scope)
    for topic in TOPICS:
        for color in COLORS:
            shown = [z for samples in accesses for t, c, z in samples if (t, c) == (topic, color)]
            expect(shown, f"nothing of {topic} {color}")
            first = 1 if durability else shown[0]
            numbered_from(first, shown[-1], shown, f"{topic} {color}")


@case("CoherentSets")
def coherent_sets_of_instances(scene):
    sets_arrive(scene, "i")


@case("CoherentSets")
def coherent_sets_of_a_topic(scene):
    sets_arrive(scene, "t")


@case("CoherentSets")
def coherent_sets_of_a_group(scene):
    sets_arrive(scene, "g")


@case("CoherentSets", variants=("-x 2",))
def coherent_sets_of_a_group_durable(scene):
    sets_arrive(scene, "g", "-D l")


SCOPES = ["i", "t", "g"]


def presentation_lattice(scene, kind):
    """The scope offered is at least the one requested; who offers no such access matches none."""
    lattice(
        scene,
        ["--access-scope g"] + [f"--{kind} --access-scope {scope}" for scope in SCOPES],
        [f"--{kind} --access-scope {scope}" for scope in SCOPES],
        lambda offer, request: offer > request,
        PRESENTATION,
    )


@case("CoherentSets", seconds=8)
def coherent_lattice(scene):
    presentation_lattice(scene, "coherent")


def unfinished(scene, scope, durability=""):
    """A writer that ends in the middle of its third set: that set is never shown."""
    subscriber = reads(scene, scope, f"--num-topics 2 -D l {durability}")
    publisher = writes(
        scene,
        scope,
        f"--num-topics 2 --num-instances 2 --num-iterations 8 --write-period 100 -D l {durability}",
    )
    publisher.wait_end()
    subscriber.wait_matched(0)
    time.sleep(1)
    for topic in TOPICS[:2]:
        for color in COLORS[:2]:
            sizes = subscriber.sizes(color, topic)
            numbered_from(1, 6, sizes, f"{topic} {color}")


@case("CoherentSets")
def unfinished_set_of_instances(scene):
    unfinished(scene, "i")


@case("CoherentSets")
def unfinished_set_of_a_topic(scene):
    unfinished(scene, "t")


@case("CoherentSets")
def unfinished_set_of_a_group(scene):
    unfinished(scene, "g")


@case("CoherentSets", seconds=8)
def killed_within_a_set(scene):
    """What was written of its last set is not shown, nor mixed with sets of its successor."""
    subscriber = reads(scene, "t", "-D l")
    killed = writes(scene, "t", "-D l --write-period 250")
    killed.wait_samples(5)
    killed.kill()
    time.sleep(1)
    expect(subscriber.sizes() == [1, 2, 3], f"of a set and two samples: {subscriber.sizes()}")
    writes(scene, "t", "-D l --write-period 100")
    subscriber.wait_samples(9)
    expect(subscriber.sizes()[3:9] == [1, 2, 3, 4, 5, 6], f"of both: {subscriber.sizes()}")


@case("CoherentSets", seconds=7)
def late_joiner_gets_whole_sets(scene):
    """It joins within a set of a durable group: all sets come, that one too when it ends."""
    publisher = writes(scene, "g", "-D l --num-topics 3 --num-instances 4 --write-period 250")
    publisher.wait_until("half a set", lambda p: max(p.sizes(), default=0) >= 8)
    subscriber = reads(scene, "g", "-D l --num-topics 3")
    subscriber.wait_until("the set it met", lambda s: max(s.sizes(), default=0) >= 9)
    subscriber.wait_until("the set after", lambda s: max(s.sizes(), default=0) >= 12)
    accesses = subscriber.accesses()
    whole_sets(accesses, "g")
    expect(accesses[0][0][2] == 1, f"began with {accesses[0][0]}")


@case("CoherentSets", seconds=7)
def volatile_late_joiner_begins_with_a_set(scene):
    """It joins within a set: what is left of that one is not shown."""
    publisher = writes(scene, "t", "--num-topics 3 --num-instances 4 --write-period 250")
    publisher.wait_until("half a set", lambda p: max(p.sizes(), default=0) >= 5)
    subscriber = reads(scene, "t", "--num-topics 3")
    subscriber.wait_accesses(3)
    accesses = subscriber.accesses()
    whole_sets(accesses, "t")
    expect(accesses[0][0][2] >= 7, f"began with {accesses[0][0]}")


@case("CoherentSets", seconds=7)
def late_joiner_of_a_shallow_history(scene):
    """The writer keeps two samples of each set of three: no old set is whole, and none is shown."""
    publisher = scene.publisher(
        "-D l -k 2 -z 0 --coherent --access-scope t --coherent-sample-count 3 --write-period 250"
    )
    publisher.wait_samples(8)
    subscriber = reads(scene, "t", "-D l")
    subscriber.wait_accesses(2)
    sizes = [size for samples in subscriber.accesses() for _, _, size in samples]
    expect(sizes[0] % SET == 1 and sizes[0] >= 7, f"began with {sizes[0]}")
    numbered_from(sizes[0], sizes[-1], sizes, "late joiner")


@case("CoherentSets", seconds=8)
def coherent_sets_of_large_samples(scene):
    """Sets whose samples are cut into fragments."""
    subscriber = reads(scene, "t", "-D l")
    writes(scene, "t", "-D l --additional-payload-size 300000 --write-period 60")
    subscriber.wait_samples(30, 30)
    numbered_from(1, 30, subscriber.sizes()[:30], "subscriber")
    for samples in subscriber.accesses():
        sizes = [size for _, _, size in samples]
        expect(sizes[0] % SET == 1 and len(sizes) % SET == 0, f"no whole sets: {sizes}")


@case("CoherentSets")
def coherent_sets_through_a_filter(scene):
    """A set is whole without what the reader's filter leaves out."""
    subscriber = reads(scene, "t", "-D l --cft \"color = 'BLUE1' AND shapesize <> 5\"")
    writes(scene, "t", "-D l --num-instances 2 --write-period 60")
    subscriber.wait_samples(14)
    expect({sample[1] for sample in subscriber.samples()} == {"BLUE1"}, "colours differ")
    wanted = [size for size in range(1, 20) if size != 5]
    sizes = subscriber.sizes()
    expect(sizes[:14] == wanted[:14], f"through the filter: {sizes}")
    for samples in subscriber.accesses():
        expect((samples[-1][2]) % SET == 0, f"no whole sets: {samples}")


@case("CoherentSets")
def plain_reader_does_not_wait_for_the_set(scene):
    """Without coherent access samples are shown as they come, though their set never ends."""
    subscriber = scene.subscriber("-D l -k 0 --read-period 20")
    patient = reads(scene, "t", "-D l")
    scene.publisher(
        "-D l -k 0 -z 0 --coherent --access-scope t --coherent-sample-count 99999 "
        "--write-period 50"
    )
    subscriber.wait_samples(20)
    numbered_from(1, 20, subscriber.sizes()[:20], "plain reader")
    patient.wait_matched(1)
    time.sleep(QUIET_SECONDS)
    expect(not patient.samples(), f"of a set that has not ended: {patient.sizes()}")


@case("CoherentSets")
def coherent_and_ordered(scene):
    """Whole sets, and within them the order of writing."""
    subscriber = reads(scene, "t", "-D l --ordered")
    writes(scene, "t", "-D l --ordered --num-instances 4 --write-period 40")
    subscriber.wait_samples(96)
    as_written(subscriber, ["Square"], COLORS)
    for samples in subscriber.accesses():
        expect(len(samples) % (SET * len(COLORS)) == 0, f"no whole sets: {samples}")


# Ordered access


def as_written(subscriber, topics, colors):
    """All samples come in the order the publisher wrote them: by size, topic, colour."""
    samples = [(topic, color, size) for topic, color, size, _ in subscriber.samples()]
    size = samples[0][2]
    order = ((t, c, z) for z in range(size, size + len(samples)) for t in topics for c in colors)
    written = [sample for _, sample in zip(samples, order)]
    for at, (shown, wanted) in enumerate(zip(samples, written)):
        expect(shown == wanted, f"sample {at}: {shown}, written was {wanted}")


def accesses_of(scene, offered, requested, options, more=""):
    """What a subscriber that looks every 400 ms is shown of a publisher of four instances."""
    subscriber = scene.subscriber(
        f"-D l -k 0 --ordered --access-scope {requested} --take-read --read-period 400 {options}"
    )
    scene.publisher(
        f"-D l -k 0 -z 0 --ordered --access-scope {offered} --write-period 50 --num-instances 4 "
        f"{options} {more}"
    )
    subscriber.wait_accesses(7)
    return subscriber


@case("OrderedAccess", variants=("-x 1", "-x 2"))
def ordered_by_instance(scene):
    """One instance after the other; each in the order of writing."""
    subscriber = accesses_of(scene, "t", "i", "")
    grouped = 0
    for samples in subscriber.accesses():
        colors = [color for _, color, _ in samples]
        changes = sum(before != after for before, after in zip(colors, colors[1:]))
        expect(changes == len(set(colors)) - 1, f"instances mixed: {colors}")
        grouped += len(colors) > len(set(colors))
    expect(grouped > 2, "never two samples of an instance at once")
    for color in COLORS:
        sizes = subscriber.sizes(color)
        numbered_from(1, sizes[-1], sizes, color)


@case("OrderedAccess", variants=("-x 1", "-x 2"))
def ordered_by_topic(scene):
    """The instances of a topic in the order of writing."""
    as_written(accesses_of(scene, "t", "t", ""), ["Square"], COLORS)


@case("OrderedAccess")
def ordered_by_topic_among_topics(scene):
    """Topics one after the other, each in the order of writing."""
    subscriber = accesses_of(scene, "g", "t", "--num-topics 2")
    for samples in subscriber.accesses():
        for topic in TOPICS[:2]:
            written = [(z, COLORS.index(c)) for t, c, z in samples if t == topic]
            expect(written == sorted(written), f"{topic}: {samples}")


@case("OrderedAccess", variants=("-x 1", "-x 2"))
def ordered_by_group(scene):
    """All instances of all topics of the publisher in the order of writing."""
    as_written(accesses_of(scene, "g", "g", "--num-topics 3"), TOPICS, COLORS)


@case("OrderedAccess")
def ordered_by_group_for_a_late_joiner(scene):
    """The past too comes in the order of writing, across topics."""
    publisher = scene.publisher(
        f"{MANY} -D l --ordered --access-scope g --write-period 50"
    )
    publisher.wait_samples(12 * 20)
    subscriber = scene.subscriber("-D l -k 0 --ordered --access-scope g --num-topics 3")
    subscriber.wait_samples(12 * 30)
    expect(subscriber.sizes()[0] == 1, f"began with {subscriber.sizes()[0]}")
    as_written(subscriber, TOPICS, COLORS)


@case("OrderedAccess", seconds=8)
def ordered_lattice(scene):
    presentation_lattice(scene, "ordered")
