"""Random types between Plainsong and another product: every sample arrives as it was written, both ways, in both
encodings, and both call the types by the same hashes.

    run.py --peer cyclone --plainsong target/debug/examples/type_peer --count 100 --seed 1
"""

import argparse
import json
import queue
import subprocess
import sys
import threading
import time
from collections import Counter

import model
from crash import Crash
from exclusions import LEFT_OUT, LEFT_OUT_OF_XCDR1, LEFT_OUT_OF_XCDR2
from generate import Generator

SAMPLES = 3
BATCH = 40
# Seconds that a peer has for a batch of samples to itself.
ALONE_WITHIN_S = 2.0
# Letters of a sample that is shown.
SHOWN = 600


class Nobody:
    """In the place of Plainsong: the peer is alone with itself."""

    def say(self, request):
        pass

    def until(self, word):
        return []


class Plainsong:
    """crates/cli/examples/type_peer.rs as a process."""

    def __init__(self, program, domain):
        command = [program, str(domain)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = queue.SimpleQueue()
        # It must not wait for us to read what it says.
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for text in self.process.stdout:
            self.lines.put(json.loads(text))
        self.lines.put(None)

    def say(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def until(self, word):
        """The lines up to one that says so."""
        lines = []
        while line := self.lines.get():
            if word in line:
                return lines
            lines.append(line)
        raise SystemExit(f"plainsong ended with {self.process.wait()}")


class Exchange:
    """One type in one encoding."""

    def __init__(self, seed, generator, version, samples, is_alone):
        self.seed, self.generator, self.version, self.samples = seed, generator, version, samples
        self.name = f"types/{seed}/{version}"
        self.begin_anew(is_alone)

    def begin_anew(self, is_alone=False):
        self.is_alone = is_alone
        self.received, self.problems, self.reader = [], [], None

    # Alone, a peer reads what it wrote.
    @property
    def read(self):
        return "q" if self.is_alone else "p"

    written = "q"
    are_hashes_compared = True

    def request(self):
        root = self.generator.root
        samples = [model.to_json(root, sample) for sample in self.samples]
        return {
            "name": self.name,
            "idl": model.idl(root),
            "type": root.full_name,
            "xcdr": self.version,
            "samples": samples,
        }

    def check(self, who, received):
        expected, found = sorted(map(repr, self.samples)), sorted(map(repr, received))
        if expected != found and not self.problems:
            missing = [text[:SHOWN] for text in expected if text not in found]
            other = [text[:SHOWN] for text in found if text not in expected]
            counts = f"{len(found)} samples, {len(expected)} were written"
            self.problems.append(f"{who} reads {counts}: {other}\n  instead of {missing}")

    def take_report(self, line):
        if "error" in line:
            self.problems.append(f"plainsong: {line['error']}")
            return
        if line["late"]:
            self.problems.append(f"plainsong: {line['late'][:SHOWN]}")
        try:
            received = [model.from_json(self.generator.root, shown) for shown in line["received"]]
        except (KeyError, ValueError) as error:
            self.problems.append(f"plainsong reads what is no value: {error!r}")
            return
        self.check("plainsong", received)
        # Fast DDS tells the complete type alone.
        if self.are_hashes_compared and any(told not in ("", own) for told, own in zip(line["told"] or [], line["own"])):
            self.problems.append(f"hashes {line['told']} of the peer, {line['own']} here: {line['differs']}")


def run_all(plainsong, peer, exchanges, within_s):
    """Runs a batch; where that ends the peer, its halves, down to the exchange that does it."""
    try:
        run_batch(plainsong, peer, exchanges, within_s)
    except Crash as crash:
        plainsong.until("read")
        plainsong.say({})
        plainsong.until("done")
        for exchange in exchanges:
            exchange.begin_anew(exchange.is_alone)
        if len(exchanges) == 1:
            exchanges[0].problems.append(f"peer: {crash}")
            return
        half = len(exchanges) // 2
        for part in (exchanges[:half], exchanges[half:]):
            run_all(plainsong, peer, part, within_s)


def leave_out_what_fails_alone(peer, exchanges, within_s):
    """The exchanges that the peer manages with itself, and why it does not manage the others."""
    for exchange in exchanges:
        exchange.is_alone = True
    run_all(Nobody(), peer, exchanges, within_s)
    left_out = {exchange: exchange.problems[0] for exchange in exchanges if exchange.problems}
    for exchange in exchanges:
        exchange.begin_anew()
    return [exchange for exchange in exchanges if exchange not in left_out], left_out


def run_batch(plainsong, peer, exchanges, within_s):
    plainsong.say({"topics": [exchange.request() for exchange in exchanges], "within_s": within_s})
    peer.open()
    for exchange in exchanges:
        try:
            peer.begin(exchange)
        except Crash:
            raise
        except Exception as error:
            exchange.problems.append(f"peer: {type(error).__name__}: {error}: {error.__cause__}")
    deadline = time.monotonic() + within_s
    peer.read(exchanges, deadline)
    lines = {line["name"]: line for line in plainsong.until("read") if "name" in line}
    for exchange in exchanges:
        if exchange.name in lines:
            exchange.take_report(lines[exchange.name])
        exchange.check("peer", exchange.received)
    peer.close()
    plainsong.say({})
    plainsong.until("done")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=sorted(LEFT_OUT), required=True)
    parser.add_argument("--plainsong", help="the built example type_peer; without it, the peer is alone with itself")
    parser.add_argument("--program", help="the built peer, if it is one")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--domain", type=int, default=0)
    parser.add_argument("--within", type=float, default=10.0, help="seconds for a batch of samples to arrive")
    parser.add_argument("--without", default="", help="constructs to leave out, with commas between")
    parser.add_argument("--with", dest="with_", default="", help="constructs to keep that the peer cannot do")
    parser.add_argument("--show", action="store_true", help="print the IDL of types that fail")
    return parser.parse_args()


def left_out(options, version):
    named = {*LEFT_OUT[options.peer], *options.without.split(",")}
    named |= {*(LEFT_OUT_OF_XCDR1 if version == 1 else LEFT_OUT_OF_XCDR2)[options.peer]}
    return frozenset(named - set(options.with_.split(",")))


def peer_of(options, domain):
    if options.peer == "cyclone":
        import cyclone

        return cyclone.Peer(domain)
    import fastdds

    return fastdds.Peer(options.program, domain)


def main():
    options = parse()
    begin = time.monotonic()
    # A DynamicTypeBuilder of Fast DDS tells other flags than its compiler does, see exclusions.py.
    Exchange.are_hashes_compared = options.peer == "cyclone"
    plainsong = Plainsong(options.plainsong, options.domain) if options.plainsong else Nobody()
    peer, alone = peer_of(options, options.domain), peer_of(options, options.domain + 1)
    failed, used, exchanges_total, unable = 0, Counter(), 0, {}
    seeds = range(options.seed, options.seed + options.count)
    for first in range(0, len(seeds), BATCH):
        exchanges = []
        for seed in seeds[first : first + BATCH]:
            for version in (1, 2):
                generator = Generator(seed, version, left_out(options, version))
                used.update(generator.used)
                samples = generator.samples(SAMPLES)
                exchanges.append(Exchange(seed, generator, version, samples, not options.plainsong))
        if options.plainsong and options.peer == "fastdds":
            exchanges, left_alone = leave_out_what_fails_alone(alone, exchanges, ALONE_WITHIN_S)
            unable |= left_alone
        run_all(plainsong, peer, exchanges, options.within)
        exchanges_total += len(exchanges)
        for exchange in exchanges:
            failed += bool(exchange.problems)
            if exchange.problems:
                print(f"FAILED seed {exchange.seed} XCDR{exchange.version}")
                print("\n".join(f"  {problem}" for problem in exchange.problems))
                if options.show:
                    print(model.idl(exchange.generator.root))
    print("with", ", ".join(f"{name} {count}" for name, count in sorted(used.items())))
    for exchange, why in unable.items():
        print(f"left out: seed {exchange.seed} XCDR{exchange.version}, which {options.peer} cannot do with itself: {why[:100]}")
    seconds = time.monotonic() - begin
    print(f"{len(seeds)} types, {exchanges_total} exchanges with {options.peer} both ways in {seconds:.1f} s")
    passed = exchanges_total - failed
    # With more than one in ten left out, a construct should be.
    if len(unable) > exchanges_total / 10:
        failed += 1
        print(f"{len(unable)} exchanges are left out")
    print(f"{passed} passed, {failed} failed, {len(unable)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
