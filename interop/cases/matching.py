"""Who meets whom: domains, topics, partitions, representations, and who leaves."""

import time

from application import LEASE_SECONDS
from case import (
    FAREWELL_SECONDS,
    QUIET_SECONDS,
    REPRESENTATION,
    REPRESENTATIONS,
    case,
    expect,
    incompatible,
    wait_sizes,
)


@case("Topic", REPRESENTATIONS, peers=True)
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


@case("Topic", peers=True)
def other_topics_do_not_match(scene):
    subscriber = scene.subscriber("-t Square")
    publisher = scene.publisher("-t Circle")
    time.sleep(QUIET_SECONDS)
    expect(not publisher.matched() and not subscriber.matched(), "different topics matched")


@case("Topic", REPRESENTATIONS, tags=("explains", "other_type"), peers=True)
def types_that_differ_are_explained(scene):
    """The subscriber is asked for its type, which has the same name; the publisher names the member."""
    scene.subscriber("--other-type")
    publisher = scene.publisher("-v d")
    member = "\"ShapeType\" with member `shapesize`: {}"
    wanted = f"the writer has {member.format('int32')}, the reader wants {member.format('float64')}"
    publisher.wait_until("the member that differs", lambda p: any(wanted in text for text in p.texts()))
    expect(not publisher.matched(), "types that differ matched")


@case("Topic", REPRESENTATIONS, tags=("learns_type",), peers=True)
def the_type_can_be_learned(scene):
    """The subscriber knows no type: it asks the publisher, as tools do that show any topic."""
    scene.publisher("-z 0")
    subscriber = scene.subscriber("--learn-type")
    members = "color, x, y, shapesize, additional_payload_size"
    wanted = f"learned type ShapeType: {members}"
    subscriber.wait_until("the type", lambda s: wanted in s.texts())
    subscriber.wait_samples(3)


@case("Domain", peers=True)
def domain_one_is_not_domain_zero(scene):
    stranger = scene.subscriber("-d 0")
    subscriber = scene.subscriber("-d 1")
    scene.publisher("-d 1")
    subscriber.wait_samples(10)
    expect(stranger.matched() is None, "a reader of domain 0 matched a writer of domain 1")


@case("Partition", seconds=7, peers=True)
def partitions(scene):
    alike = scene.subscriber("-p p1")
    pattern = scene.subscriber("-p p*")
    other = scene.subscriber("-p q1")
    scene.publisher("-p p1")
    alike.wait_samples(5)
    pattern.wait_samples(5)
    time.sleep(1)
    expect(not other.matched() and not other.samples(), "partition q1 met partition p1")


@case("DataRepresentation", variants=("",), tags=("representation",), peers=True)
def incompatible_representation_1_to_2(scene):
    incompatible(scene, "-x 1", "-x 2", REPRESENTATION)


@case("DataRepresentation", variants=("",), tags=("representation",), peers=True)
def incompatible_representation_2_to_1(scene):
    incompatible(scene, "-x 2", "-x 1", REPRESENTATION)


@case("Departure", tags=("farewell",), peers=True)
def publisher_leaves(scene):
    subscriber = scene.subscriber("")
    publisher = scene.publisher("")
    subscriber.wait_samples(5)
    publisher.interrupt()
    subscriber.wait_matched(0, FAREWELL_SECONDS)


@case("Departure", tags=("farewell",), peers=True)
def subscriber_leaves(scene):
    subscriber = scene.subscriber("")
    publisher = scene.publisher("")
    subscriber.wait_samples(5)
    publisher.wait_matched(1)
    subscriber.interrupt()
    publisher.wait_matched(0, FAREWELL_SECONDS)


@case("Departure", seconds=25, tags=("killed",), peers=True)
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


@case("Departure", seconds=8, peers=True)
def publisher_comes_back(scene):
    subscriber = scene.subscriber("-k 0")
    first = scene.publisher("-z 10")
    subscriber.wait_until("samples of the first", lambda s: 10 in s.sizes())
    first.kill()
    second = scene.publisher("-z 11")
    subscriber.wait_until("samples of the second", lambda s: 11 in s.sizes())
    second.wait_matched(1)


@case("Domain")
def domains_do_not_mix(scene):
    """The same topic in two domains of one host, at the same time."""
    ends = [(scene.subscriber(f"-d {domain}"), domain) for domain in (3, 100)]
    for _, domain in ends:
        scene.publisher(f"-d {domain} -z {domain}")
    for subscriber, domain in ends:
        subscriber.wait_samples(20)
        expect(set(subscriber.sizes()) == {domain}, f"domain {domain}: {set(subscriber.sizes())}")


@case("Topic")
def many_topics(scene):
    """Five topics between one publisher and one subscriber: each brings all samples of its own."""
    subscriber = scene.subscriber("-D l -k 0 --num-topics 5 --read-period 20")
    scene.publisher("-D l -k 0 -z 0 --num-topics 5 --write-period 20")
    names = ["Square", "Square1", "Square2", "Square3", "Square4"]
    subscriber.wait_until(
        "40 samples of each topic", lambda s: all(len(s.sizes(topic=name)) >= 40 for name in names)
    )
    for name in names:
        sizes = subscriber.sizes(topic=name)
        expect(sizes == list(range(1, len(sizes) + 1)), f"{name}: {sizes[:50]}")


@case("Topic")
def topics_are_told_apart_among_many(scene):
    """Of three topics of the publisher, one is the subscriber's; it has another two of its own."""
    subscriber = scene.subscriber("-t Circle1 --num-topics 3")
    publisher = scene.publisher("-t Circle --num-topics 2")
    subscriber.wait_samples(10)
    expect({sample[0] for sample in subscriber.samples()} == {"Circle1"}, "topics mixed")
    for end in (publisher, subscriber):
        lines = [text for text in end.texts() if "_matched()" in text]
        expect(all("'Circle1'" in line for line in lines), f"{end.label}: {lines}")


@case("Partition", seconds=7)
def partition_pattern_of_a_publisher(scene):
    """Patterns are for either side, but a pattern does not match a pattern."""
    alike = scene.subscriber("-p sensors/left")
    other = scene.subscriber("-p motors/left")
    same = scene.subscriber("-p sensors/*")
    wider = scene.subscriber("-p s*")
    publisher = scene.publisher("-p sensors/*")
    alike.wait_samples(5)
    time.sleep(QUIET_SECONDS)
    expect(publisher.matched() == 1, f"sensors/* met {publisher.matched()}")
    expect(not other.matched(), "motors/left met sensors/*")
    expect(not same.matched() and not wider.matched(), "a pattern met a pattern")


@case("Partition")
def default_partition_is_one_of_its_own(scene):
    nameless = scene.subscriber("")
    named = scene.subscriber("-p here")
    one_letter = scene.subscriber("-p ?")
    scene.publisher("-z 10")
    scene.publisher("-z 11 -p here")
    nameless.wait_samples(10)
    named.wait_samples(10)
    time.sleep(1)
    expect(set(nameless.sizes()) == {10}, f"no partition: samples of {set(nameless.sizes())}")
    expect(set(named.sizes()) == {11}, f"partition here: samples of {set(named.sizes())}")
    expect(not one_letter.matched(), "one letter met none, or four")


@case("DataRepresentation", variants=("",))
def representations_side_by_side(scene):
    """Writers and readers of both representations: each reader hears the writer of its own."""
    subscribers = [scene.subscriber(f"-x {version}") for version in (1, 2)]
    publishers = [scene.publisher(f"-x {version} -z {10 + version}") for version in (1, 2)]
    for version, subscriber in zip((1, 2), subscribers):
        wait_sizes(subscriber, {10 + version})
        subscriber.wait_samples(10)
        sizes = set(subscriber.sizes())
        expect(sizes == {10 + version}, f"XCDR{version}: samples of {sizes}")
    for end in subscribers + publishers:
        end.wait_until("incompatible QoS", lambda e: e.incompatible() == REPRESENTATION)
