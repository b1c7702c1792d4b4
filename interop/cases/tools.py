"""The tools of Plainsong with a topic of another product: they have its type from the wire alone."""

import json

from application import Failure
from case import REPRESENTATIONS, case, expect

TOPIC = "Telemetry"
# What the publisher writes with an odd number (peers/cyclone_python/telemetry.py).
ODD = {
    "robot": "R2",
    "mode": "MOVING",
    "position": {"x": 1.5, "y": -2.0},
    "track": [{"x": 0.0, "y": 0.25}, {"x": "Infinity", "y": 0.5}],
    "volts": [0.5, 1.5, 2.5],
    "image": "//4ABw==",
    "fault": {"$discriminator": 2, "text": "hot"},
    "battery": {"charge": 0.75, "cells": [1, 65535]},
    "note": "odd",
}


def objects(tool):
    return [json.loads(text) for text in tool.texts() if text.startswith("{")]


@case("Tools", REPRESENTATIONS, seconds=8, tags=("telemetry_writer",), peers=True)
def sub_prints_a_type_from_the_wire(scene):
    scene.publisher(f"--telemetry -t {TOPIC} -r -D l -k 0 --write-period 50")
    sub = scene.tool("sub", TOPIC, "--json", "--count", "6", "--wait", "15")
    sub.wait_end(30)
    samples = [line["data"] for line in objects(sub)]
    expect(len(samples) == 6, f"{len(samples)} samples: {sub.texts()}")
    for sample in samples:
        count = sample.pop("count") - 2**63
        wanted = dict(ODD)
        if count % 2 == 0:
            wanted["fault"] = {"$discriminator": 1, "code": 7}
            del wanted["note"]
        expect(sample == wanted, f"sample {count} is {sample}")


@case("Tools", seconds=8, tags=("telemetry_writer",), peers=True)
def filtered_by_an_expression_on_a_type_from_the_wire(scene):
    scene.publisher(f"--telemetry -t {TOPIC} -r --write-period 50")
    tool = scene.tool(
        "sub", TOPIC, "--json", "--count", "3", "--wait", "15", "--filter", "note = 'odd' AND mode = 'MOVING'"
    )
    tool.wait_end(30)
    notes = [line["data"].get("note") for line in objects(tool)]
    expect(notes == ["odd"] * 3, f"{notes}")


@case("Tools", seconds=8, tags=("telemetry_writer",), peers=True)
def type_prints_idl_from_the_wire(scene):
    scene.publisher(f"--telemetry -t {TOPIC} -r")
    tool = scene.tool("type", TOPIC, "--wait", "15")
    tool.wait_end(30)
    text = "\n".join(tool.texts())
    for part in ("module lab", "@key string robot;", "enum Mode", "union Fault", "@mutable", "@optional string note;"):
        expect(part in text, f"no {part!r} in {text}")


@case("Tools", seconds=8, tags=("telemetry_writer",), peers=True)
def rates_are_measured_without_a_type(scene):
    scene.publisher(f"--telemetry -t {TOPIC} -r --write-period 20")
    for command, member in (("hz", "hz"), ("bw", "bytes_per_second"), ("delay", "delay_s")):
        tool = scene.tool(command, TOPIC, "--json", "--count", "1", "--wait", "15")
        tool.wait_end(30)
        found = objects(tool)
        if len(found) != 1 or not found[0][member]:
            raise Failure(f"{command}: {tool.texts()}")


@case("Tools", REPRESENTATIONS, seconds=8, tags=("telemetry_reader",), peers=True)
def pub_writes_a_type_from_the_wire(scene):
    reader = scene.subscriber(f"--telemetry -t {TOPIC} -r -k 0")
    sample = {**ODD, "count": 2**64 - 1}
    pub = scene.tool("pub", TOPIC, json.dumps(sample), "--wait", "15")
    pub.wait_end(30)
    reader.wait_until("sample", lambda r: any("robot='R2'" in text for text in r.texts()))
    line = next(text for text in reader.texts() if "robot='R2'" in text)
    for part in (
        f"count={2**64 - 1}",
        "Mode.MOVING",
        "Position(x=1.5, y=-2.0)",
        "Position(x=inf, y=0.5)",
        "volts=[0.5, 1.5, 2.5]",
        "image=[255, 254, 0, 7]",
        "hot",
        "charge=0.75, cells=[1, 65535]",
        "note='odd'",
    ):
        expect(part in line, f"no {part!r} in {line}")
