"""What `plainsong record` keeps of a product, read by the library of others and played to a product."""

import json
import pathlib
import subprocess
import tempfile

from application import Failure
from case import case, expect, numbered_from

READER = pathlib.Path(__file__).resolve().parent.parent / "read_mcap.py"
SAMPLES = 30


def read(scene, path):
    """The file as the Python package `mcap` reads it: a dictionary of what it has."""
    python = scene.peers_directory / "venv/bin/python"
    if not python.exists():
        raise Failure(f"{python} is missing: cargo xtask setup")
    done = subprocess.run([python, READER, path], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise Failure(f"the file cannot be read: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


@case("Recording", seconds=12, peers=True)
def recorded_and_played(scene):
    """A file is read by the package that others use, as it grows and when it is done, and played."""
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/square.mcap"
        recorder = scene.tool("record", "Square", "-o", path)
        publisher = scene.publisher(f"-k 0 -z 0 --num-iterations {SAMPLES} --write-period 50")
        recorder.wait_until("a channel", lambda r: any("topic 'Square'" in text for text in r.texts()))
        publisher.wait_end()
        recorder.wait_until("a sample on the disk", lambda _: read(scene, path)["samples"])
        recorder.interrupt()
        found = read(scene, path)
        expect(found["summary"], "the file has no summary")
        expect(found["topics"] == ["Square"], f"topics {found['topics']}")
        expect(found["encodings"] == ["cdr"], f"encodings {found['encodings']}")
        # A peer that tells no type that we ask for is recorded without schema.
        expect(set(found["schemas"]) <= {"omgidl ShapeType"}, f"schemas {found['schemas']}")
        scene.note(f"{found['samples']} samples, schemas {found['schemas']}")
        # What a writer wrote before it matched nobody keeps.
        expect(found["samples"] >= SAMPLES // 2, f"{found['samples']} samples of {SAMPLES}")

        subscriber = scene.subscriber("-k 0 --read-period 10")
        player = scene.tool("play", path, "--rate", "4", "--wait", "15")
        player.wait_end(30)
        subscriber.wait_samples(found["samples"])
        sizes = subscriber.sizes()
        numbered_from(sizes[-1] - found["samples"] + 1, sizes[-1], sizes, subscriber.label)
