"""What `plainsong doctor` and `plainsong ls` say of a domain in which nobody is of Plainsong."""

import json

from application import PATIENCE_SECONDS, Failure
from case import case, expect

# A writer and a reader each, of one topic: the code that doctor must find, what the two are started with, what it says
# of both, and of the cure.
MISMATCHES = {
    "Reliability": ("qos-reliability", "-b", "-r", "the writer has BEST_EFFORT, the reader wants RELIABLE", "RELIABLE"),
    "Durability": (
        "qos-durability",
        "-D v",
        "-D l",
        "the writer has VOLATILE, the reader wants TRANSIENT_LOCAL",
        "set the reader's DURABILITY to VOLATILE",
    ),
    "Deadline": (
        "qos-deadline",
        "-f 2000",
        "-f 500",
        "the writer has 2 s, the reader wants 500 ms",
        "set the reader's DEADLINE to at least 2 s",
    ),
    "Ownership": ("qos-ownership", "-s 5", "-s -1", "the writer has EXCLUSIVE, the reader wants SHARED", "EXCLUSIVE"),
    "Partition": (
        "partition",
        "-p left",
        "-p right",
        'the writer has "left", the reader wants "right"',
        "add \"left\" to the subscriber's PARTITION",
    ),
}
PRODUCTS = {"cyclone_c": "Cyclone DDS", "cyclone_python": "Cyclone DDS", "fastdds_cpp": "Fast DDS"}
# Every product is on either side.
PAIRS = (("cyclone_c", "fastdds_cpp"), ("fastdds_cpp", "cyclone_python"), ("cyclone_python", "cyclone_c"))
TRIES = 5


def told(scene, command, is_told, *options):
    """What a tool of Plainsong prints as JSON, once it has all that is wanted: discovery goes on meanwhile."""
    for _ in range(TRIES):
        tool = scene.tool(command, "--json", *options)
        tool.wait_end(PATIENCE_SECONDS, wanted=None)
        found = json.loads("\n".join(text for text in tool.texts() if text.startswith("{")))
        if is_told(found):
            return found
    raise Failure(f"{command} does not tell what is wanted: {json.dumps(found)}")


def of_code(report, code):
    return [it for it in report["findings"] if it["code"] == code]


def codes(report):
    return {it["code"] for it in report["findings"]}


def named(finding):
    return [finding["entity"], *finding["also"]]


@case("Doctor", seconds=15, pairs=PAIRS)
def policies_that_differ_between_others(scene):
    """Each policy that keeps two of other products apart is found with both values and a cure; what matches is well."""
    for topic, (_, offered, requested, *_) in MISMATCHES.items():
        scene.subscriber(f"-t {topic} {requested}")
        scene.publisher(f"-t {topic} {offered}")
    scene.subscriber("-t Square")
    publisher = scene.publisher("-t Square")
    publisher.wait_matched(1)
    wanted = {code for code, *_ in MISMATCHES.values()}

    def has_all(report):
        starved = sum(len(named(it)) for it in of_code(report, "reader-starved"))
        return wanted <= codes(report) and starved == len(MISMATCHES)

    report = told(scene, "doctor", has_all, "--this-domain-only")
    for topic, (code, _, _, words, cure) in MISMATCHES.items():
        findings = of_code(report, code)
        expect(len(findings) == 1, f"{code} {len(findings)} times")
        finding = findings[0]
        expect(finding["entity"].startswith(f'topic "{topic}": writer '), f"{code} of {finding['entity']}")
        expect(words in finding["what"], f"{code}: {finding['what']}")
        expect(cure in finding["cure"], f"{code}: {finding['cure']}")
        # Where a partition is meant to keep apart it is no fault.
        severity = "warning" if code == "partition" else "error"
        expect(finding["severity"] == severity, f"{code} is a {finding['severity']}")
    others = {code for code in codes(report) if code.startswith(("qos", "type", "key", "topic"))} - wanted
    expect(not others, f"found, too: {others}")
    shows_the_domain(scene)


def shows_the_domain(scene):
    """Participants with their products, topics, types, endpoints, matches and mismatches."""
    topics = {"Square", *MISMATCHES}
    view = told(scene, "ls", lambda view: len(view["endpoints"]) == 2 * len(topics))
    products = [it["product"] for it in view["participants"]]
    wanted = sorted(len(topics) * [PRODUCTS[name] for name in scene.pair])
    expect(sorted(products) == wanted, f"products {products}")
    expect(all(it["answers"] and it["process"] for it in view["participants"]), f"{view['participants']}")
    expect({it["name"] for it in view["topics"]} == topics, f"{view['topics']}")
    for topic in view["topics"]:
        is_well = topic["name"] == "Square"
        counts = [topic[key] for key in ("writers", "readers", "matches", "mismatches")]
        expect(counts == [1, 1, int(is_well), int(not is_well)], f"{topic}")
    expect([it["name"] for it in view["types"]] == ["ShapeType"], f"{view['types']}")
    subjects = {it["topic"]: [part["subject"] for part in it["differences"]] for it in view["mismatches"]}
    expect(subjects == {topic: [topic.upper()] for topic in MISMATCHES}, f"mismatches {subjects}")


@case("Doctor", variants=("",), seconds=8, pairs=(("cyclone_python", "cyclone_c"),))
def a_representation_that_differs_between_others(scene):
    scene.subscriber("-x 2")
    scene.publisher("-x 1")
    report = told(scene, "doctor", lambda it: "qos-data-representation" in codes(it), "--this-domain-only")
    finding = of_code(report, "qos-data-representation")[0]
    expect("the writer has XCDR1, the reader wants XCDR2" in finding["what"], finding["what"])
    expect(finding["severity"] == "error", finding["severity"])


@case("Doctor", variants=("-x 1", "-x 2"), seconds=8, pairs=(("cyclone_python", "cyclone_python"),))
def a_type_that_differs_between_others(scene):
    """Both are asked for their types, which have the same name: the member that differs is named."""
    scene.subscriber("--other-type")
    scene.publisher("")
    report = told(scene, "doctor", lambda it: "type" in codes(it), "--this-domain-only")
    finding = of_code(report, "type")[0]
    for part in ("member `shapesize`: int32", "member `shapesize`: float64"):
        expect(part in finding["what"], finding["what"])
    expect(finding["severity"] == "error", finding["severity"])


@case("Doctor", seconds=10, pairs=(("fastdds_cpp", "cyclone_c"),))
def another_domain_and_a_ros_prefix_of_others(scene):
    scene.subscriber("-t Far")
    scene.publisher("-t Far -d 3")
    scene.subscriber("-t chatter")
    scene.publisher("-t rt/chatter")
    wanted = {"other-domain", "topic-ros-prefix", "reader-without-writer", "writer-without-reader"}
    report = told(scene, "doctor", lambda it: wanted <= codes(it))
    domain, names = (of_code(report, code)[0] for code in ("other-domain", "topic-ros-prefix"))
    expect(domain["entity"] == "domain 3" and domain["severity"] == "warning", f"{domain}")
    expect("Fast DDS" in domain["what"], domain["what"])
    expect(names["entity"] == 'topics "chatter" and "rt/chatter"', names["entity"])
    lonely = [entity for it in of_code(report, "reader-without-writer") for entity in named(it)]
    expect(sorted(entity.split(":")[0] for entity in lonely) == ['topic "Far"', 'topic "chatter"'], f"{lonely}")
