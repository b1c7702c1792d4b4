"""Types and values for peers/fastdds_types, as S-expressions."""

import subprocess
import time

import model
from crash import Crash


# Nothing more comes when nothing came for so long.
QUIET_ALONE_S = 0.4


def type_of(ty):
    match ty:
        case model.Primitive():
            return ty.name
        case model.String():
            return f"({'wstring' if ty.wide else 'string'} {ty.bound})"
        case model.Sequence():
            return f"(sequence {ty.bound} {type_of(ty.element)})"
        case model.Array():
            return f"(array ({' '.join(map(str, ty.dimensions))}) {type_of(ty.element)})"
        case model.Map():
            return f"(map {ty.bound} {type_of(ty.key)} {type_of(ty.value)})"
    return ty.full_name


def member(member):
    flags = [name for name in ("key", "optional", "external", "must_understand") if getattr(member, name)]
    # By XTypes 1.3 §7.2.2.4.4.4.8 a key must be understood.
    flags += ["must_understand"] if member.key else []
    return f"({member.name} {member.id} {type_of(member.type)} {' '.join(flags)})"


def definition(ty):
    name = ty.full_name
    match ty:
        case model.Alias():
            return f"(alias {name} {type_of(ty.target)})"
        case model.Enumeration():
            literals = " ".join(f"({literal} {value})" for literal, value in ty.literals)
            return f"(enum {name} {ty.bit_bound} {ty.default or '-'} ({literals}))"
        case model.Bitmask():
            flags = " ".join(f"({flag} {position})" for flag, position in ty.flags)
            return f"(bitmask {name} {ty.bit_bound} ({flags}))"
        case model.Bitset():
            fields = " ".join(
                f"({field} {position} {width} {kind or smallest(width)})" for field, position, width, kind in ty.fields
            )
            return f"(bitset {name} ({fields}))"
    nested = "nested" if ty.nested else "-"
    if isinstance(ty, model.Structure):
        base = ty.base.full_name if ty.base else "-"
        members = " ".join(map(member, ty.members))
        return f"(struct {name} {ty.extensibility} {nested} {base} ({members}))"
    cases = []
    for case in ty.cases:
        labels = " ".join(str(number(label)) for label in case.labels)
        cases.append(f"({member(case.member)} {'default' if case.is_default else '-'} {labels})")
    return f"(union {name} {ty.extensibility} {nested} {type_of(ty.discriminator)} ({' '.join(cases)}))"


def smallest(width):
    """The holder of a field that tells none (IDL 4.2 §7.4.13.4.3.3)."""
    if width == 1:
        return "boolean"
    return next(f"uint{bits}" for bits in (8, 16, 32, 64) if width <= bits)


def number(value):
    if isinstance(value, str):
        return ord(value)
    return int(value) if isinstance(value, bool) else value


def hexadecimal(text):
    return "x" + text.encode().hex()


def wide_hexadecimal(text):
    return "x" + "".join(f"{ord(letter):04x}" for letter in text)


def value_of(ty, value):
    ty = model.resolved(ty)
    match ty:
        case model.Primitive(name="float32" | "float64"):
            return repr(value)
        case model.Primitive():
            return str(number(value))
        case model.String():
            return wide_hexadecimal(value) if ty.wide else hexadecimal(value)
        case model.Sequence():
            return f"({' '.join(value_of(ty.element, one) for one in value)})"
        case model.Array():
            return f"({' '.join(value_of(ty.element, one) for one in flat(value, len(ty.dimensions)))})"
        case model.Map():
            pairs = [f"({hexadecimal(key_text(ty.key, key))} {value_of(ty.value, one)})" for key, one in value]
            return f"({' '.join(pairs)})"
        case model.Structure():
            told = [it for it in ty.all_members if it.name in value]
            return f"({' '.join(f'({it.id} {value_of(it.type, value[it.name])})' for it in told)})"
        case model.Bitset():
            return f"({' '.join(f'({position} {value[name]})' for name, position, _, _ in ty.fields)})"
        case model.Union():
            case = ty.case_of(value.discriminator)
            # That of a default member cannot be set: it has the one that generate.default_of_fastdds tells.
            is_default = case is not None and case.is_default
            discriminator = "-" if is_default else value_of(ty.discriminator, value.discriminator)
            inner = f" {case.member.id} {value_of(case.member.type, value.value)}" if case else ""
            return f"({discriminator}{inner})"
    return str(value)


def key_text(ty, key):
    ty = model.resolved(ty)
    return ty.name_of(key) if isinstance(ty, model.Enumeration) else str(key)


def flat(value, depth):
    return value if depth == 1 else [one for inner in value for one in flat(inner, depth - 1)]


class Peer:
    """The process."""

    def __init__(self, program, domain):
        self.command = [program, str(domain)]
        self.process = None

    def say(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.crash()

    def crash(self):
        status, self.process = self.process.wait(), None
        raise Crash(f"the process ended with {status}")

    def open(self):
        if self.process is None:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(
                self.command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, bufsize=1 << 20
            )

    def begin(self, exchange):
        root = exchange.generator.root
        definitions = " ".join(map(definition, model.definitions_of(root)))
        values = " ".join(value_of(root, sample) for sample in exchange.samples)
        head = f"{exchange.name} {exchange.version} {exchange.written} {exchange.read}"
        self.say(f"(topic {head} ({definitions}) {root.full_name} ({values}))")

    def read(self, exchanges, deadline):
        seconds = deadline - time.monotonic()
        # With itself a peer is as fast as it gets.
        quiet = QUIET_ALONE_S if exchanges and exchanges[0].is_alone else seconds
        self.say(f"(read {seconds} {quiet})")
        problems = {}
        while (line := self.process.stdout.readline()) and line != "done\n":
            name, problem = line.rstrip("\n").split("\t", 1)
            problems[name] = problem
        if not line:
            self.crash()
        for exchange in exchanges:
            if exchange.name in problems:
                exchange.problems.append(f"peer: {problems[exchange.name]}")
            else:
                exchange.received = exchange.samples

    def close(self):
        self.say("(close)")
