#!/usr/bin/env python3
"""The interop harness: shapes applications of two products against each other.

Every case runs both applications in a network namespace of its own, whose only interface is
loopback, and checks what they print. See interop/README.md; the cases are in cases.py.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cases  # noqa: E402, F401
import products  # noqa: E402
from application import Failure, Scene  # noqa: E402
from case import CASES, GROUPS, by_name  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUTCOMES = ("passed", "failed", "skipped")
# So many failed runs are tried again alone. More than that is no matter of a busy machine.
TRIED_AGAIN_MAX = 3
ENTER = (
    "ip link set lo up && ip link set lo multicast on && "
    'ip route add 224.0.0.0/4 dev lo && exec "$@"'
)


def main():
    options = parse()
    table = products.table(options.plainsong, options.peers_directory)
    if options.inside:
        return inside(table, options)
    chosen = list(jobs(table, options))
    if options.list:
        for job in chosen:
            print(job_name(job))
        return 0
    return run_all(table, chosen, options)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--plainsong", default=target / "release/plainsong", type=pathlib.Path)
    parser.add_argument("--peers-directory", default=target / "interop", type=pathlib.Path)
    parser.add_argument("--pub", help="run only this publisher: a product, or an executable")
    parser.add_argument("--sub", help="run only this subscriber: a product, or an executable")
    parser.add_argument("--filter", default="", help="run only runs whose name contains this")
    parser.add_argument("--list", action="store_true", help="print the names of the runs")
    parser.add_argument("--jobs", type=int, default=6, help="cases at once")
    parser.add_argument("--verbose", action="store_true", help="print the output of failed runs")
    parser.add_argument("--inside", nargs=4, help=argparse.SUPPRESS)
    return parser.parse_args()


def jobs(table, options):
    """Yields (case, variant, publisher, subscriber): Plainsong with itself, by memory and by UDP, and
    with every peer, or the pair the options name."""
    if options.pub or options.sub:
        pairs = [(options.pub or "plainsong", options.sub or "plainsong")]
    else:
        peers = [name for name in table if name not in products.OWN]
        pairs = [(name, name) for name in products.OWN]
        pairs += [pair for peer in peers for pair in (("plainsong", peer), (peer, "plainsong"))]
        # At these Plainsong looks from outside.
        pairs += sorted({pair for case in CASES for pair in case.pairs})
    for publisher, subscriber in pairs:
        ends = [products.find(table, name) for name in (publisher, subscriber)]
        with_peer = any(name in table and name not in products.OWN for name in (publisher, subscriber))
        with_own = any(name in products.OWN for name in (publisher, subscriber))
        for case in CASES:
            if case.pairs and (publisher, subscriber) not in case.pairs:
                continue
            if not case.pairs and not (with_own or options.pub or options.sub):
                continue
            if with_peer and not case.peers and not case.pairs:
                continue
            for variant in case.variants:
                job = (case.name, variant, publisher, subscriber)
                if options.filter not in job_name(job):
                    continue
                if not products.gap(case, variant, *ends):
                    yield job


def job_name(job):
    case, variant, publisher, subscriber = job
    return f"{publisher}->{subscriber} {by_name(case).title(variant)}"


def run_all(table, chosen, options):
    begin = time.monotonic()
    runnable, results = [], []
    for job in chosen:
        absent = [name for name in job[2:] if not products.find(table, name).is_there()]
        if absent:
            outcome = "failed" if os.environ.get("CI") else "skipped"
            results.append((job, outcome, 0.0, f"{absent[0]} is missing: cargo xtask setup", []))
        else:
            runnable.append(job)
    for name in sorted({result[3] for result in results}):
        print(f"!!!! {name}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        # The longest first, so that the last to end is a short one.
        runnable.sort(key=lambda job: -by_name(job[0]).seconds)
        futures = [pool.submit(run_one, job, options) for job in runnable]
        for future in concurrent.futures.as_completed(futures):
            results.append(future.result())
            tell(results[-1], options.verbose)
    results = try_again(results, runnable, options)
    print_table(results)
    report(results, options.peers_directory, time.monotonic() - begin)
    counts = {key: sum(r[1] == key for r in results) for key in OUTCOMES}
    print(", ".join(f"{count} {key}" for key, count in counts.items()), flush=True)
    return 1 if counts["failed"] or not results else 0


def tell(result, verbose, word=None):
    job, outcome, seconds, message, lines = result
    line = f"{word or outcome:<7} {seconds:5.1f} s  {job_name(job)}  {message}"
    print(line.rstrip(), flush=True)
    if outcome == "failed" and verbose:
        print("\n".join(f"        {line}" for line in lines), flush=True)


def try_again(results, runnable, options):
    """Runs the few that failed once more, one at a time: what they check depends on time, and a
    machine that runs six at once may not give it. Each is told with why it failed first."""
    failed = [result for result in results if result[1] == "failed" and result[0] in runnable]
    if not 0 < len(failed) <= TRIED_AGAIN_MAX:
        return results
    print("---- once more, alone:", flush=True)
    for first in failed:
        second = run_one(first[0], options)
        tell(second, True)
        if second[1] == "passed":
            tell(first, True, word="again")
            results[results.index(first)] = second
    return results


def run_one(job, options):
    """Runs one case in a namespace of its own; (job, outcome, seconds, message, output)."""
    case = by_name(job[0])
    command = ["unshare", "-n" if os.geteuid() == 0 else "-rn", "sh", "-c", ENTER, "--"]
    command += [sys.executable, __file__, "--inside", *job]
    command += ["--plainsong", str(options.plainsong)]
    command += ["--peers-directory", str(options.peers_directory)]
    begin = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        output, errors = process.communicate(timeout=case.seconds + 60)
        answer = json.loads(output)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        answer = {"message": "the run never ended", "output": []}
    except ValueError:
        answer = {"message": f"the run broke: {errors.strip()[-300:]}", "output": []}
    outcome = "failed" if answer["message"] else "passed"
    message = answer["message"] or ", ".join(answer.get("notes", []))
    return job, outcome, time.monotonic() - begin, message, answer["output"]


def inside(table, options):
    """Runs one case here, in the namespace; prints the answer as JSON."""
    case, variant, publisher, subscriber = options.inside
    ends = [products.find(table, name) for name in (publisher, subscriber)]
    scene = Scene(*ends, variant, options.peers_directory.absolute(), table["plainsong"])
    message = ""
    try:
        by_name(case).play(scene)
    except Failure as failure:
        message = "; ".join([str(failure), *scene.crashes()])
    finally:
        scene.end()
    print(json.dumps({"message": message, "notes": scene.notes, "output": scene.output()}))
    return 0


def print_table(results):
    """Passed, failed and skipped by group: Plainsong with itself, and with others."""
    groups = {group: {} for group in GROUPS}
    for job, outcome, *_ in results:
        column = "itself" if job[2] == job[3] in products.OWN else "others"
        counts = groups[by_name(job[0]).group].setdefault(column, dict.fromkeys(OUTCOMES, 0))
        counts[outcome] += 1
    heads = [(column, outcome) for column in ("itself", "others") for outcome in OUTCOMES]
    print(f"{'group':<19}", *(f"{' '.join(head):>15}" for head in heads))
    for group, columns in groups.items():
        if columns:
            found = [columns.get(column, {}).get(outcome) or "-" for column, outcome in heads]
            print(f"{group:<19}", *(f"{count:>15}" for count in found))


def report(results, directory, seconds):
    """Writes report.xml (JUnit) beside the peers, with the output of failed runs."""
    suite = ElementTree.Element("testsuite", name="interop", tests=str(len(results)))
    suite.set("time", f"{seconds:.1f}")
    for key in ("failed", "skipped"):
        attribute = "failures" if key == "failed" else key
        suite.set(attribute, str(sum(result[1] == key for result in results)))
    for job, outcome, took, message, lines in results:
        case, variant, publisher, subscriber = job
        element = ElementTree.SubElement(suite, "testcase", name=by_name(case).title(variant))
        element.set("classname", f"{publisher}->{subscriber}")
        element.set("time", f"{took:.1f}")
        if outcome == "failed":
            failure = ElementTree.SubElement(element, "failure", message=message)
            failure.text = printable("\n".join(lines))
        elif outcome == "skipped":
            ElementTree.SubElement(element, "skipped", message=message)
    directory.mkdir(parents=True, exist_ok=True)
    ElementTree.indent(suite)
    ElementTree.ElementTree(suite).write(directory / "report.xml", encoding="utf-8")


def printable(text):
    return "".join(c for c in text if c.isprintable() or c in "\n\t")


if __name__ == "__main__":
    sys.exit(main())
