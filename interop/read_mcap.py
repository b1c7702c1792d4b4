"""Reads a recording with the Python package `mcap` and prints what it has as JSON: read_mcap.py FILE"""

import json
import sys

from mcap.reader import make_reader


def main():
    with open(sys.argv[1], "rb") as file:
        reader = make_reader(file)
        summary = reader.get_summary()
        samples, events, topics, encodings, schemas = 0, [], set(), set(), set()
        for schema, channel, message in reader.iter_messages():
            if channel.topic == "plainsong/events":
                events.append(json.loads(message.data))
                continue
            samples += 1
            topics.add(channel.topic)
            encodings.add(channel.message_encoding)
            if schema:
                schemas.add(f"{schema.encoding} {schema.name}")
    found = {
        "summary": summary is not None,
        "samples": samples,
        "events": events,
        "topics": sorted(topics),
        "encodings": sorted(encodings),
        "schemas": sorted(schemas),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
