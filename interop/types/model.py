"""Types and values that belong to no product: what the generator makes, as IDL and as the JSON of docs/topics.md.

A type is one of the classes below. A value is a number, a text, a list (sequences, arrays), a list of pairs in the
order of their keys (maps), a dictionary (structures, without absent members; bitsets), an integer (enumerations,
bitmasks), or a `Chosen` (unions).
"""

import base64
import math
import struct
from dataclasses import dataclass, field
from hashlib import md5

INTEGERS = {
    "int8": (-(2**7), 2**7 - 1),
    "uint8": (0, 2**8 - 1),
    "octet": (0, 2**8 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
IDL_NAMES = {"float32": "float", "float64": "double"}


@dataclass(frozen=True)
class Primitive:
    name: str


@dataclass(frozen=True)
class String:
    wide: bool
    bound: int = 0


@dataclass(frozen=True)
class Sequence:
    element: object
    bound: int = 0


@dataclass(frozen=True)
class Array:
    element: object
    dimensions: tuple


@dataclass(frozen=True)
class Map:
    key: object
    value: object
    bound: int = 0


@dataclass(eq=False)
class Definition:
    """What has a name. `scope` is the names of the modules around it."""

    scope: tuple
    name: str

    @property
    def full_name(self):
        return "::".join((*self.scope, self.name))


@dataclass(eq=False)
class Alias(Definition):
    target: object = None


@dataclass(eq=False)
class Enumeration(Definition):
    bit_bound: int = 32
    literals: list = field(default_factory=list)  # of (name, value)
    default: str = None

    def name_of(self, value):
        return next(name for name, known in self.literals if known == value)


@dataclass(eq=False)
class Bitmask(Definition):
    bit_bound: int = 32
    flags: list = field(default_factory=list)  # of (name, position)


@dataclass(eq=False)
class Bitset(Definition):
    fields: list = field(default_factory=list)  # of (name, position, width, type or None)

    @property
    def bits(self):
        name, position, width, _ = self.fields[-1]
        return position + width


@dataclass
class Member:
    name: str
    type: object
    id: int
    is_id_told: bool = False
    hash_id: str = None
    key: bool = False
    optional: bool = False
    external: bool = False
    must_understand: bool = False


@dataclass(eq=False)
class Aggregate(Definition):
    extensibility: str = "appendable"
    autoid: str = None
    nested: bool = False


@dataclass(eq=False)
class Structure(Aggregate):
    base: object = None
    members: list = field(default_factory=list)

    @property
    def all_members(self):
        return (self.base.all_members if self.base else []) + self.members


@dataclass
class Case:
    labels: list
    is_default: bool
    member: Member


@dataclass(eq=False)
class Union(Aggregate):
    discriminator: object = None
    is_key: bool = False
    cases: list = field(default_factory=list)

    def case_of(self, value):
        found = [case for case in self.cases if value in case.labels]
        return (found or [case for case in self.cases if case.is_default] or [None])[0]


@dataclass
class Chosen:
    discriminator: object
    value: object


def hashed_id(name):
    return struct.unpack("<I", md5(name.encode()).digest()[:4])[0] & 0x0FFFFFFF


def resolved(ty):
    while isinstance(ty, Alias):
        ty = ty.target
    return ty


def is_octet(ty):
    return resolved(ty) in (Primitive("octet"), Primitive("uint8"))


def parts_of(ty):
    """The types that a type names."""
    match ty:
        case Alias():
            return [ty.target]
        case Sequence() | Array():
            return [ty.element]
        case Map():
            return [ty.key, ty.value]
        case Structure():
            return ([ty.base] if ty.base else []) + [member.type for member in ty.members]
        case Union():
            return [ty.discriminator] + [case.member.type for case in ty.cases]
    return []


def definitions_of(ty):
    """All definitions that a type leads to, each after those that it uses, itself among them."""
    order, seen = [], set()

    def visit(ty):
        if isinstance(ty, Definition):
            if id(ty) in seen:
                return
            seen.add(id(ty))
        for part in parts_of(ty):
            visit(part)
        if isinstance(ty, Definition):
            order.append(ty)

    visit(ty)
    return order


# IDL


def idl(root):
    """The text of a type and of all that it uses."""
    lines = []
    for definition in definitions_of(root):
        open_, close = "", ""
        for name in definition.scope:
            open_ += f"module {name} {{ "
            close += " };"
        lines.append(f"{open_}\n{idl_definition(definition)}\n{close.strip()}")
    return "\n".join(lines) + "\n"


def idl_type(ty):
    match ty:
        case Primitive():
            return IDL_NAMES.get(ty.name, ty.name)
        case String():
            name = "wstring" if ty.wide else "string"
            return f"{name}<{ty.bound}>" if ty.bound else name
        case Sequence():
            bound = f", {ty.bound}" if ty.bound else ""
            return f"sequence<{idl_type(ty.element)}{bound}>"
        case Map():
            bound = f", {ty.bound}" if ty.bound else ""
            return f"map<{idl_type(ty.key)}, {idl_type(ty.value)}{bound}>"
        case Definition():
            return f"::{ty.full_name}"
    raise TypeError(ty)


def idl_declaration(ty, name):
    if isinstance(ty, Array):
        return f"{idl_type(ty.element)} {name}" + "".join(f"[{size}]" for size in ty.dimensions)
    return f"{idl_type(ty)} {name}"


def idl_label(union, label):
    kind = resolved(union.discriminator)
    if isinstance(kind, Enumeration):
        return "::" + "::".join((*kind.scope, kind.name_of(label)))
    if kind.name in ("char", "wchar"):
        return ("L" if kind.name == "wchar" else "") + f"'{label}'"
    if kind.name == "boolean":
        return "TRUE" if label else "FALSE"
    return str(label)


def idl_member(member):
    told = []
    if member.key:
        told.append("@key")
    if member.is_id_told:
        told.append(f"@id({member.id})")
    if member.hash_id is not None:
        told.append(f'@hashid("{member.hash_id}")' if member.hash_id else "@hashid")
    for name in ("optional", "external", "must_understand"):
        if getattr(member, name):
            told.append(f"@{name}")
    return " ".join([*told, idl_declaration(member.type, member.name)]) + ";"


def idl_aggregate(definition):
    told = [f"@{definition.extensibility}"]
    if definition.nested:
        told.append("@nested")
    if definition.autoid:
        told.append(f"@autoid({definition.autoid})")
    return " ".join(told)


def idl_definition(definition):
    name = definition.name
    match definition:
        case Alias():
            return f"typedef {idl_declaration(definition.target, name)};"
        case Enumeration():
            told = {definition.default: "@default_literal "}
            literals = [f"{told.get(it, '')}@value({value}) {it}" for it, value in definition.literals]
            literals = ", ".join(literals)
            return f"@bit_bound({definition.bit_bound}) enum {name} {{ {literals} }};"
        case Bitmask():
            flags = ", ".join(f"@position({position}) {flag}" for flag, position in definition.flags)
            return f"@bit_bound({definition.bit_bound}) bitmask {name} {{ {flags} }};"
        case Bitset():
            text, next_ = "", 0
            for field_, position, width, ty in definition.fields:
                if position > next_:
                    text += f"bitfield<{position - next_}>; "
                text += f"bitfield<{width}{', ' + ty if ty else ''}> {field_}; "
                next_ = position + width
            return f"bitset {name} {{ {text}}};"
        case Structure():
            base = f" : ::{definition.base.full_name}" if definition.base else ""
            members = "\n  ".join(map(idl_member, definition.members))
            return f"{idl_aggregate(definition)} struct {name}{base} {{\n  {members}\n}};"
        case Union():
            cases = []
            for case in definition.cases:
                labels = [f"case {idl_label(definition, label)}:" for label in case.labels]
                labels += ["default:"] if case.is_default else []
                cases.append(" ".join([*labels, idl_member(case.member)]))
            key = "@key " if definition.is_key else ""
            head = f"union {name} switch ({key}{idl_type(definition.discriminator)})"
            return f"{idl_aggregate(definition)} {head} {{\n  " + "\n  ".join(cases) + "\n};"
    raise TypeError(definition)


# JSON

UNNUMBERED = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def to_json(ty, value):
    ty = resolved(ty)
    match ty:
        case Primitive(name="float32" | "float64") if not math.isfinite(value):
            return next(text for text, known in UNNUMBERED.items() if repr(known) == repr(value))
        case Primitive() | String():
            return value
        case Sequence():
            if is_octet(ty.element):
                return base64.b64encode(bytes(value)).decode()
            return [to_json(ty.element, one) for one in value]
        case Array():
            return array_to_json(ty, value, len(ty.dimensions))
        case Map():
            if has_key_text(ty.key):
                return {key_text(ty.key, key): to_json(ty.value, one) for key, one in value}
            return [[to_json(ty.key, key), to_json(ty.value, one)] for key, one in value]
        case Enumeration():
            return ty.name_of(value)
        case Bitmask():
            return [name for name, position in ty.flags if value >> position & 1]
        case Bitset():
            return sum(value[name] % 2**width << position for name, position, width, _ in ty.fields)
        case Structure():
            told = [member for member in ty.all_members if member.name in value]
            return {member.name: to_json(member.type, value[member.name]) for member in told}
        case Union():
            shown = {"$discriminator": to_json(ty.discriminator, value.discriminator)}
            if case := ty.case_of(value.discriminator):
                shown[case.member.name] = to_json(case.member.type, value.value)
            return shown
    raise TypeError(ty)


def array_to_json(ty, value, depth):
    if depth == 1:
        if is_octet(ty.element):
            return base64.b64encode(bytes(value)).decode()
        return [to_json(ty.element, one) for one in value]
    return [array_to_json(ty, one, depth - 1) for one in value]


def has_key_text(ty):
    ty = resolved(ty)
    return isinstance(ty, (String, Enumeration)) or isinstance(ty, Primitive)


def key_text(ty, key):
    return key if isinstance(key, str) else str(to_json(ty, key)).lower() if isinstance(key, bool) else str(to_json(ty, key))


def from_json(ty, shown):
    """The value that is shown; raises where it is none."""
    ty = resolved(ty)
    match ty:
        case Primitive(name="float32" | "float64"):
            number = UNNUMBERED[shown] if isinstance(shown, str) else float(shown)
            return narrowed(number) if ty.name == "float32" else number
        case Primitive() | String():
            return shown
        case Sequence():
            if is_octet(ty.element):
                return list(base64.b64decode(shown))
            return [from_json(ty.element, one) for one in shown]
        case Array():
            return array_from_json(ty, shown, len(ty.dimensions))
        case Map():
            if isinstance(shown, dict):
                pairs = [(key_of_text(ty.key, key), from_json(ty.value, one)) for key, one in shown.items()]
            else:
                pairs = [(from_json(ty.key, key), from_json(ty.value, one)) for key, one in shown]
            return sorted(pairs, key=lambda pair: pair[0])
        case Enumeration():
            return dict(ty.literals)[shown]
        case Bitmask():
            return sum(1 << dict(ty.flags)[name] for name in shown)
        case Bitset() if isinstance(shown, dict):
            return {name: int(shown[name]) for name, *_ in ty.fields}
        case Bitset():
            return {name: signed(shown >> position, width, kind) for name, position, width, kind in ty.fields}
        case Structure():
            unknown = shown.keys() - {member.name for member in ty.all_members}
            if unknown:
                raise ValueError(f"{ty.name} has no {unknown}")
            told = [member for member in ty.all_members if member.name in shown]
            return {member.name: from_json(member.type, shown[member.name]) for member in told}
        case Union():
            discriminator = from_json(ty.discriminator, shown["$discriminator"])
            case = ty.case_of(discriminator)
            return Chosen(discriminator, from_json(case.member.type, shown[case.member.name]) if case else None)
    raise TypeError(ty)


def array_from_json(ty, shown, depth):
    if depth == 1:
        if is_octet(ty.element):
            return list(base64.b64decode(shown))
        return [from_json(ty.element, one) for one in shown]
    return [array_from_json(ty, one, depth - 1) for one in shown]


def key_of_text(ty, text):
    ty = resolved(ty)
    match ty:
        case String() | Primitive(name="char" | "wchar"):
            return text
        case Enumeration():
            return dict(ty.literals)[text]
        case Primitive(name="boolean"):
            return {"true": True, "false": False}[text]
    return int(text)


def signed(bits, width, kind):
    bits %= 2**width
    return bits - 2**width if kind and kind.startswith("int") and bits >> (width - 1) else bits


def narrowed(number):
    return struct.unpack("f", struct.pack("f", number))[0]
