"""Running shapes applications and reading what they print."""

import os
import re
import shlex
import signal
import subprocess
import threading
import time

SAMPLE = re.compile(r"^(\S+) +(\S+) +(-?\d+) (-?\d+) \[(-?\d+)\](?: \{(\d+)\})?$")
END = re.compile(r"^(\S+) +(\S+) +NOT_ALIVE_(DISPOSED|NO_WRITERS)_INSTANCE_STATE$")
MATCHED = re.compile(r"^on_(?:publication|subscription)_matched\(\) .* : matched \w+ (\d+) \(")
INCOMPATIBLE = re.compile(r"^on_(?:offered|requested)_incompatible_qos\(\) .* : (\d+) \(")
DEADLINE_MISSED = re.compile(r"^on_(?:offered|requested)_deadline_missed\(\) .* : \(total = (\d+),")
READ_BEGINS = re.compile(r"^Reading (?:coherent sets|with ordered access), iteration \d+$")

# How long anything that must happen may take on a busy machine.
PATIENCE_SECONDS = 15
# A killed participant is noticed when its lease ends; products announce 10 to 20 seconds.
LEASE_SECONDS = 45


class Failure(Exception):
    """What a case expected and did not get."""


class Application:
    """One running shapes application."""

    def __init__(self, label, command, environment):
        self.label = label
        self.lines = []
        self._condition = threading.Condition()
        self._begin = time.monotonic()
        self.command = command
        self.environment = environment
        self._was_killed = False
        self._was_refused = False
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            with self._condition:
                self.lines.append((time.monotonic() - self._begin, line.rstrip("\n")))
                self._condition.notify_all()
        with self._condition:
            self._condition.notify_all()

    def shared_memories(self):
        """How many segments of memory it shares with others: its own, and those of others."""
        with open(f"/proc/{self._process.pid}/maps", encoding="utf-8") as maps:
            return sum("/memfd:plainsong" in line for line in maps)

    def texts(self):
        with self._condition:
            return [text for _, text in self.lines]

    def wait_until(self, what, test, seconds=PATIENCE_SECONDS):
        """Waits until `test(self)` is true of what was printed so far."""
        end = time.monotonic() + seconds
        with self._condition:
            while not test(self):
                left = end - time.monotonic()
                if left <= 0 or not self._reader.is_alive():
                    state = "timed out" if left <= 0 else "it ended first"
                    raise Failure(f"{self.label}: no {what} ({state})")
                self._condition.wait(min(left, 0.5))

    def wait_end(self, seconds=PATIENCE_SECONDS, wanted=0):
        """Waits for the application to end by itself, with the exit status wanted; None: with any."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.label}: still running after {seconds} s") from None
        self._reader.join(5)
        self._was_refused = wanted is None or status == wanted != 0
        if wanted is not None and status != wanted:
            raise Failure(f"{self.label}: exit status {status}")

    def interrupt(self):
        """Ctrl-C: it must end by itself, with success."""
        self._process.send_signal(signal.SIGINT)
        self.wait_end(10)

    def kill(self):
        """Ends it without a chance to say goodbye."""
        self._was_killed = True
        self._process.kill()
        self._process.wait()

    def stop(self):
        """Nothing of it runs any more, and the kernel keeps what it has open."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)

    def is_running(self):
        return self._process.poll() is None

    def crash(self):
        """How it ended, when that was not its own decision or the harness's; else an empty text."""
        status = self._process.poll()
        if status in (None, 0) or self._was_killed or self._was_refused:
            return ""
        return f"{self.label}: exit status {status}"

    def samples(self):
        """What was printed as samples: (topic, color, size, last octet or None)."""
        found = (SAMPLE.match(text) for text in self.texts())
        return [(m[1], m[2], int(m[5]), m[6] and int(m[6])) for m in found if m]

    def sizes(self, color=None, topic=None):
        samples = self.samples()
        return [size for t, c, size, _ in samples if color in (None, c) and topic in (None, t)]

    def longest_pause_seconds(self):
        """Between two lines that show samples."""
        with self._condition:
            times = [at for at, text in self.lines if SAMPLE.match(text)]
        return max((after - at for at, after in zip(times, times[1:])), default=0)

    def accesses(self):
        """The samples of each access to its readers that has ended and showed any, as (topic,
        color, size). Applications print accesses with coherent or ordered access only."""
        found = [[]]
        for text in self.texts():
            sample = SAMPLE.match(text)
            # With both kinds of access there are two lines; empty accesses do not count.
            if READ_BEGINS.match(text):
                found.append([])
            elif sample:
                found[-1].append((sample[1], sample[2], int(sample[5])))
        return [samples for samples in found[:-1] if samples]

    def wait_accesses(self, count, seconds=PATIENCE_SECONDS):
        self.wait_until(f"{count} accesses", lambda a: len(a.accesses()) >= count, seconds)

    def ends(self):
        """The last end of instance printed for each colour."""
        found = (END.match(text) for text in self.texts())
        return {m[2]: m[3] for m in found if m}

    def ends_of_topics(self):
        """The last end of instance printed for each topic and colour."""
        found = (END.match(text) for text in self.texts())
        return {(m[1], m[2]): m[3] for m in found if m}

    def matched(self):
        """The count in the last matched line, None before the first."""
        counts = [int(m[1]) for m in map(MATCHED.match, self.texts()) if m]
        return counts[-1] if counts else None

    def first_times_seconds(self):
        """When the first match and the first sample were printed."""
        with self._condition:
            lines = list(self.lines)
        kinds = {"match": MATCHED, "sample": SAMPLE}
        return {
            kind: next((at for at, text in lines if pattern.match(text)), None)
            for kind, pattern in kinds.items()
        }

    def incompatible(self):
        """The last incompatible policy, None when there was none."""
        policies = [int(m[1]) for m in map(INCOMPATIBLE.match, self.texts()) if m]
        return policies[-1] if policies else None

    def missed_deadlines(self):
        """The total in the last line about a missed deadline."""
        totals = [int(m[1]) for m in map(DEADLINE_MISSED.match, self.texts()) if m]
        return totals[-1] if totals else 0

    def wait_matched(self, count=1, seconds=PATIENCE_SECONDS):
        self.wait_until(f"match of {count}", lambda a: a.matched() == count, seconds)

    def wait_samples(self, count, seconds=PATIENCE_SECONDS):
        self.wait_until(f"{count} samples", lambda a: len(a.samples()) >= count, seconds)


class Scene:
    """One case on the stage: the two products, and the applications started so far."""

    def __init__(self, publisher, subscriber, variant, peers_directory, onlooker):
        self._publisher = publisher
        self._subscriber = subscriber
        # Whose tools are used where neither is of Plainsong.
        self._onlooker = onlooker
        self.pair = (publisher.name, subscriber.name)
        self._variant = variant.split()
        self._applications = []
        self.peers_directory = peers_directory
        self.notes = []

    def note(self, text):
        """Something that was measured, for the line of the run."""
        self.notes.append(text)

    def publisher(self, options, **environment):
        return self._start("publisher", self._publisher, ["-P", "-w"], options, environment)

    def subscriber(self, options, **environment):
        return self._start("subscriber", self._subscriber, ["-S"], options, environment)

    def beside(self, options):
        """A further subscriber, of the publisher's product."""
        return self._start("beside", self._publisher, ["-S"], options, {})

    def tool(self, *words):
        """A command of Plainsong, whichever side that is."""
        ends = (self._publisher, self._subscriber)
        own = next((it for it in ends if it.name.startswith("plainsong")), self._onlooker)
        command = [own.command[0], *words]
        application = Application(f"plainsong {words[0]}", command, own.environment)
        self._applications.append(application)
        return application

    def octets_sent(self):
        """What all applications together have put on the wire so far; the namespace is theirs."""
        with open("/proc/self/net/dev", encoding="ascii") as interfaces:
            line = next(line for line in interfaces if line.strip().startswith("lo:"))
        return int(line.split(":")[1].split()[8])

    def subscriber_can(self, tag):
        return self._subscriber.can("subscriber", tag)

    def _start(self, role, product, flags, options, environment):
        words = shlex.split(options)
        if "-x" not in words:
            words += self._variant
        count = sum(a.label.startswith(role) for a in self._applications)
        label = f"{role}{count + 1 if count else ''} ({product.name})"
        environment = {**product.environment, **environment}
        application = Application(label, product.command + flags + words, environment)
        self._applications.append(application)
        application.wait_until("'Create topic:'", lambda a: any_line(a, "Create topic:"))
        return application

    def crashes(self):
        return [crash for application in self._applications if (crash := application.crash())]

    def end(self):
        for application in self._applications:
            if application.is_running():
                application.kill()

    def output(self):
        lines = []
        for application in self._applications:
            lines.append(f"---- {application.label}: {' '.join(application.command)}")
            texts = [f"{at:7.3f} {text[:200]}" for at, text in list(application.lines)]
            cut = [f"... {len(texts) - 80} lines ..."] if len(texts) > 80 else []
            lines += texts[:40] + cut + texts[max(40, len(texts) - 40) :]
        return lines


def any_line(application, prefix):
    return any(text.startswith(prefix) for _, text in application.lines)
