"""Content filters. Readers of Plainsong announce theirs and filter what comes all the same; a
writer of Plainsong does not send what its readers leave out."""

import time

from case import REPRESENTATIONS, case, expect, numbered_from, wait_sizes

# An expression that no sample passes.
NOTHING = "--cft 'shapesize < 0'"


@case("Cft", REPRESENTATIONS, seconds=6, tags=("expression",), peers=True)
def content_filter(scene):
    subscriber = scene.subscriber("-k 0 -D l --read-period 20 --cft 'shapesize <= 20'")
    publisher = scene.publisher("-k 0 -D l -z 0 --write-period 20")
    publisher.wait_matched(1)
    publisher.wait_samples(100)
    subscriber.wait_samples(20)
    time.sleep(1)
    numbered_from(1, 20, subscriber.sizes(), "subscriber")


@case("Cft", REPRESENTATIONS, seconds=6, tags=("expression",), peers=True)
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


@case("Cft", REPRESENTATIONS, seconds=7, tags=("expression", "final", "filtered_end"), peers=True)
def content_filter_on_the_key(scene):
    subscriber = scene.subscriber(
        "-k 0 --read-period 20 --cft \"color = 'BLUE1' OR color = 'BLUE2'\""
    )
    publisher = scene.publisher(
        "-k 0 -z 0 --num-instances 4 --num-iterations 8 --write-period 400 --final-instance-state d"
    )
    wanted = dict.fromkeys(("BLUE1", "BLUE2"), "DISPOSED")
    subscriber.wait_until(f"{wanted}", lambda s: s.ends() == wanted)
    publisher.wait_end()
    expect({color for _, color, _, _ in subscriber.samples()} == set(wanted), "other colours came")


@case("Cft")
def filter_of_one_color(scene):
    subscriber = scene.subscriber("-k 0 -c RED")
    scene.publisher("-k 0 -c BLUE")
    scene.publisher("-k 0 -c RED")
    subscriber.wait_matched(2)
    subscriber.wait_samples(30)
    colors = {sample[1] for sample in subscriber.samples()}
    expect(colors == {"RED"}, f"samples of {colors}")


@case("Cft")
def filter_on_a_range(scene):
    """A reliable reader gets each sample of the range once, whoever filters."""
    subscriber = scene.subscriber("-D l -k 0 --cft 'shapesize BETWEEN 21 AND 60'")
    scene.publisher("-D l -k 0 -z 0 --write-period 20")
    wait_sizes(subscriber, {60})
    time.sleep(1)
    numbered_from(21, 60, subscriber.sizes(), "subscriber")


def passes(scene, expression, wanted):
    """Of sizes from 1 to 10, over and over, exactly the wanted ones pass."""
    subscriber = scene.subscriber(f'-k 0 --read-period 20 --cft "{expression}"')
    scene.publisher("-k 0 -z 0 --size-modulo 10 --write-period 15")
    subscriber.wait_samples(10 * len(wanted))
    sizes = subscriber.sizes()
    at = wanted.index(sizes[0]) if sizes[0] in wanted else 0
    expected = [wanted[(at + count) % len(wanted)] for count in range(len(sizes))]
    expect(sizes == expected, f"{expression}: {sizes[:20]}")


@case("Cft")
def filter_on_equality(scene):
    passes(scene, "shapesize = 7", [7])


@case("Cft")
def filter_on_comparisons(scene):
    passes(scene, "shapesize > 3 AND shapesize <= 6", [4, 5, 6])


@case("Cft")
def filter_of_all_operators(scene):
    either = "(shapesize >= 9 OR NOT shapesize NOT BETWEEN 2 AND 4)"
    passes(scene, f"{either} AND shapesize <> 3 AND x >= 0", [2, 4, 9, 10])


def passing_colors(scene, expression):
    """The colours that pass, of COLORS."""
    subscriber = scene.subscriber(f'-D l -k 0 --read-period 20 --cft "{expression}"')
    scene.publisher("-D l -k 0 -z 0 --num-instances 4 --write-period 20")
    subscriber.wait_samples(30)
    found = {sample[1] for sample in subscriber.samples()}
    for color in found:
        sizes = subscriber.sizes(color)
        numbered_from(1, sizes[-1], sizes, color)
    return found


@case("Cft")
def filter_like_any_text(scene):
    found = passing_colors(scene, "color LIKE '%3'")
    expect(found == {"BLUE3"}, f"samples of {found}")


@case("Cft")
def filter_like_one_character(scene):
    found = passing_colors(scene, "color LIKE 'BLUE_'")
    expect(found == {"BLUE1", "BLUE2", "BLUE3"}, f"samples of {found}")


@case("Cft")
def filter_without_sense_makes_no_reader(scene):
    for expression in ("shapesize <=", "nothing = 1", "color > 5 OR"):
        subscriber = scene.subscriber(f"--cft '{expression}'")
        subscriber.wait_end(wanted=2)
        refusal = "failed to create content filtered topic"
        expect(refusal in subscriber.texts(), f"took {expression}")


@case("Cft", variants=("-x 1", "-x 2"))
def filters_share_out_the_samples(scene):
    """Two readers with opposite filters: each sample reaches one of them, none both."""
    small = scene.subscriber("-D l -k 0 --read-period 20 --cft 'shapesize <= 100'")
    large = scene.subscriber("-D l -k 0 --read-period 20 --cft 'shapesize > 100'")
    scene.publisher("-D l -k 0 -z 0 --write-period 10")
    wait_sizes(large, {200})
    numbered_from(1, 100, small.sizes(), "up to 100")
    numbered_from(101, 200, large.sizes()[:100], "above 100")


@case("Cft", seconds=6)
def filter_of_a_late_joiner(scene):
    """The past is filtered like the present."""
    publisher = scene.publisher("-D l -k 0 -z 0 --write-period 20 --num-instances 4")
    publisher.wait_samples(200)
    subscriber = scene.subscriber("-D l -k 0 -c BLUE2 --read-period 20")
    subscriber.wait_samples(100)
    expect({sample[1] for sample in subscriber.samples()} == {"BLUE2"}, "colours differ")
    numbered_from(1, 100, subscriber.sizes()[:100], "BLUE2")


def octets_of(scene, options):
    """Octets sent while 60 samples are written that no reader wants, and those of the samples."""
    # What goes by shared memory is not counted.
    subscriber = scene.subscriber(f"-k 0 {NOTHING} {options}", PLAINSONG_SHARED_MEMORY="off")
    publisher = scene.publisher(
        f"-k 0 -z 0 --additional-payload-size 20000 --write-period 25 {options}",
        PLAINSONG_SHARED_MEMORY="off",
    )
    publisher.wait_matched(1)
    subscriber.wait_matched(1)
    # Discovery has its say first.
    time.sleep(2)
    written, begin = len(publisher.samples()), scene.octets_sent()
    publisher.wait_samples(written + 60)
    spent = scene.octets_sent() - begin
    expect(not subscriber.samples(), f"passed the filter: {subscriber.sizes()}")
    return spent, 60 * 20_000


@case("Cft")
def filtered_by_the_writer(scene):
    """What no reader wants is not sent."""
    spent, samples = octets_of(scene, "")
    expect(spent < samples // 20, f"{spent} octets on the wire for samples of {samples}")


@case("Cft")
def filtered_by_the_reader(scene):
    """Samples that decide about ownership are sent to all; the reader shows none of them."""
    spent, samples = octets_of(scene, "-s 3")
    # Of a sample that is written as counting begins or ends, the octets may be counted and it not, or the other way round.
    expect(spent > samples * 9 // 10, f"{spent} octets on the wire for samples of {samples}")
