"""What `plainsong record` keeps of a product, read by the library of others and played to a product."""

import json
import pathlib
import subprocess
import tempfile

from application import Failure
from case import REPRESENTATIONS, case, expect, numbered_from

READER = pathlib.Path(__file__).resolve().parent.parent / "read_mcap.py"
WRITER = READER.with_name("write_mcap.py")
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


def is_sample(text):
    return text.startswith(("Square ", "Telemetry("))


def shown(application):
    """The samples and ends of instances that it printed, in their order by instance."""
    lines = [text for text in application.texts() if is_sample(text)]
    # The reader of a product may show instances one after the other.
    return sorted(lines, key=lambda text: text.split()[1])


# Where both sides are others', Plainsong records one and plays to the other.
OTHERS = (("cyclone_python", "cyclone_python"), ("fastdds_cpp", "cyclone_python"), ("cyclone_python", "cyclone_c"))


@case("Recording", seconds=12, pairs=OTHERS)
def what_others_wrote_is_played_to_others(scene):
    """Values and ends of instances come to a reader of another product as they were written."""
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/square.mcap"
        recorder = scene.tool("record", "Square", "-o", path)
        recorder.wait_until("the recorder", lambda r: any("recording domain" in text for text in r.texts()))
        publisher = scene.publisher(
            f"-D l -k 0 -z 0 --num-instances 2 --num-iterations {SAMPLES} --write-period 50 --final-instance-state d"
        )
        publisher.wait_end(20)
        recorder.interrupt()
        found = read(scene, path)
        # Both instances; of a writer that keeps everything it has everything.
        expect(found["samples"] == 2 * SAMPLES, f"{found['samples']} samples of {2 * SAMPLES}")
        kinds = [event["kind"] for event in found["events"]]
        expect(kinds.count("dispose") + kinds.count("dispose_unregister") == 2, f"events {kinds}")

        subscriber = scene.subscriber("-D l -k 0 --read-period 10")
        player = scene.tool("play", path, "--rate", "4", "--wait", "15")
        # What the key is of a type that was not told nobody knows.
        has_key = bool(found["schemas"])
        player.wait_end(30, wanted=0 if has_key else 1)
        if has_key:
            disposed = {"BLUE": "DISPOSED", "BLUE1": "DISPOSED"}
            subscriber.wait_until("both ends", lambda s: s.ends() == disposed)
        else:
            refused = [text for text in player.texts() if "an instance cannot be ended" in text]
            expect(len(refused) == 2, f"{player.texts()}")
            subscriber.wait_samples(2 * SAMPLES)
        written = shown(publisher)
        read_back = [text for text in shown(subscriber) if "NOT_ALIVE" not in text]
        expect(read_back == written, f"written {written[:4]}, read {read_back[:4]}: {len(written)}, {len(read_back)}")


@case("Recording", variants=REPRESENTATIONS, seconds=12, pairs=(("cyclone_python", "cyclone_python"),))
def a_type_with_everything_is_recorded_and_played_to_others(scene):
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/telemetry.mcap"
        recorder = scene.tool("record", "Telemetry", "-o", path)
        live = scene.subscriber("--telemetry -t Telemetry -r -D l -k 0")
        publisher = scene.publisher("--telemetry -t Telemetry -r -D l -k 0 --write-period 50")
        live.wait_until("10 samples", lambda s: len(shown(s)) >= 10)
        publisher.interrupt()
        recorder.interrupt()
        live.interrupt()
        found = read(scene, path)
        expect(found["schemas"] == ["omgidl lab::Telemetry"], f"schemas {found['schemas']}")
        replayed = scene.subscriber("--telemetry -t Telemetry -r -D l -k 0")
        player = scene.tool("play", path, "--fast", "--wait", "15")
        player.wait_end(30)
        wanted = [text for text in live.texts() if is_sample(text)]
        replayed.wait_until("all of them", lambda s: len([t for t in s.texts() if is_sample(t)]) >= len(wanted))
        got = [text for text in replayed.texts() if is_sample(text)]
        expect(got == wanted, f"written {wanted[:2]}, read {got[:2]}")


@case("Recording", seconds=8, tags=("recorded_by_others",), peers=True)
def what_others_recorded_is_played(scene):
    """Files that the Python package `mcap` wrote, with each of its compressions, as `ros2 bag` has them."""
    python = scene.peers_directory / "venv/bin/python"
    with tempfile.TemporaryDirectory() as directory:
        subscriber = scene.subscriber("-x 1 -k 0 --read-period 10")
        listener = scene.tool("hz", "/chatter", "--json", "--wait", "20")
        for turn, compression in enumerate(("none", "lz4", "zstd"), 1):
            path = f"{directory}/{compression}.mcap"
            subprocess.run([python, WRITER, path, compression, str(SAMPLES)], check=True, timeout=60)
            player = scene.tool("play", path, "-t", "Square", "/chatter", "--wait", "15")
            # A channel of JSON is left out, and told.
            player.wait_end(30, wanted=1)
            said = " ".join(player.texts())
            expect(f"{2 * SAMPLES} samples" in said, f"{compression}: {said}")
            expect("'/other' is left out: its messages are encoded as 'json'" in said, f"{compression}: {said}")
            subscriber.wait_samples(turn * SAMPLES)
        sizes = subscriber.sizes(color="RED")
        expect(sizes == 3 * [3 * number for number in range(1, SAMPLES + 1)], f"sizes {sizes}")
        listener.wait_until("rates", lambda a: any('"hz"' in text for text in a.texts()))
        listener.interrupt()
