"""Writes a file as recorders of others do, by the Python package `mcap`: write_mcap.py FILE COMPRESSION SAMPLES

Shapes in XCDR1 with a schema of IDL on the topic Square, and texts as `ros2 bag` records them on /chatter."""

import struct
import sys

from mcap.writer import CompressionType, Writer

SHAPE = """@appendable struct ShapeType {
  @key string<128> color; long x; long y; long shapesize; sequence<octet> additional_payload_size;
};
"""
PROFILES = """- history: keep_last
  depth: 100
  reliability: reliable
  durability: transient_local
  avoid_ros_namespace_conventions: false
"""
PERIOD_NS = 10_000_000
BEGIN_NS = 1_700_000_000_000_000_000


def text(value):
    octets = value.encode() + b"\0"
    padding = b"\0" * (-len(octets) % 4)
    return struct.pack("<I", len(octets)) + octets + padding


def shape(number):
    return b"\0\1\0\0" + text("RED") + struct.pack("<iiiI", number, 2 * number, 3 * number, 0)


def main():
    path, compression, samples = sys.argv[1:]
    with open(path, "wb") as file:
        writer = Writer(file, compression=CompressionType[compression.upper()], chunk_size=4_096)
        writer.start(profile="ros2", library="others")
        schema = writer.register_schema(name="ShapeType", encoding="omgidl", data=SHAPE.encode())
        square = writer.register_channel(topic="Square", message_encoding="cdr", schema_id=schema)
        schema = writer.register_schema(name="std_msgs/msg/String", encoding="ros2msg", data=b"string data\n")
        metadata = {"offered_qos_profiles": PROFILES}
        chatter = writer.register_channel(
            topic="/chatter", message_encoding="cdr", schema_id=schema, metadata=metadata
        )
        other = writer.register_channel(topic="/other", message_encoding="json", schema_id=0)
        for number in range(1, int(samples) + 1):
            time = BEGIN_NS + number * PERIOD_NS
            writer.add_message(square, time, shape(number), time, number)
            writer.add_message(chatter, time, b"\0\1\0\0" + text(f"number {number}"), time, number)
        writer.add_message(other, time, b"{}", time, 1)
        writer.finish()


if __name__ == "__main__":
    main()
