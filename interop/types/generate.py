"""Random types with random values: everything follows from the seed and from what is left out."""

import math
import random
import string
import struct

from model import (
    INTEGERS,
    Alias,
    Array,
    Bitmask,
    Bitset,
    Case,
    Chosen,
    Definition,
    Enumeration,
    Map,
    Member,
    Primitive,
    Sequence,
    String,
    Structure,
    Union,
    hashed_id,
    resolved,
)

EXTENSIBILITIES = ("final", "appendable", "mutable")
BASIC = (*INTEGERS, "boolean", "char", "float32", "float64")
LETTERS = string.ascii_letters + string.digits + " _-/'\"\\\t"
WIDE_LETTERS = LETTERS + "äß€Ωж漢"
DEPTH_MAX = 3
# A sample has about so many parts at most.
PARTS_MAX = 300


def default_of_fastdds(cases):
    """The discriminator that Fast DDS writes with a default member, where nothing else has it."""
    default = 0
    for case in cases[1:]:
        for label in case.labels:
            default = max(default, label + 1)
    is_free = all(default not in case.labels for case in cases)
    return default if is_free and default <= 127 else None


class Generator:
    """Makes one type, a structure, and samples of it. `left_out` are names of constructs, see exclusions.py."""

    def __init__(self, seed, version, left_out=frozenset()):
        self.random = random.Random(f"plainsong {seed}")
        self.left_out = left_out
        self.scope = (f"t{seed}_{version}",)
        self.definitions = []
        self.parts = 0
        self.used = set()
        self.root = self.structure(0, is_root=True)

    # Choices

    def one_in(self, count):
        return self.random.randrange(count) == 0

    def may(self, construct, count):
        """Whether a construct comes, once in `count` times, if the peer has it."""
        chosen = self.one_in(count) and construct not in self.left_out
        if chosen:
            self.used.add(construct)
        return chosen

    def named(self, prefix):
        scope = self.scope + (("inner",) if self.one_in(4) else ())
        return scope, f"{prefix}{len(self.definitions)}"

    def add(self, definition):
        self.definitions.append(definition)
        return definition

    def known(self, *kinds):
        found = [it for it in self.definitions if isinstance(it, kinds)]
        return self.random.choice(found) if found and self.one_in(3) else None

    # Types

    def primitive(self):
        if self.may("wchar", 12):
            return Primitive("wchar")
        return Primitive(self.random.choice(BASIC))

    def string(self):
        bound = self.random.choice((0, 0, 1, 7, 255, 256, 1000))
        if "bounded string" in self.left_out:
            bound = 0
        return String(self.may("wstring", 4), bound)

    def bound(self):
        return self.random.choice((0, 0, 0, 3, 9, 255, 300))

    def type(self, depth):
        """A type that an element may have."""
        choice = self.random.randrange(20 if depth < DEPTH_MAX else 11)
        if choice < 6:
            return self.primitive()
        if choice < 8:
            return self.string()
        if choice == 8:
            return self.enumeration()
        if choice == 9:
            return self.bitmask()
        if choice == 10:
            return self.bitset() if self.may("bitset", 2) else self.primitive()
        if choice < 13:
            return Sequence(self.element(depth), self.bound())
        if choice == 13 and self.may("map", 1):
            key, value = self.map_key(), self.element(depth)
            if isinstance(key, String) and isinstance(resolved(value), Primitive):
                key = key if self.may("map from strings to primitives", 1) else self.primitive_key()
            return Map(key, value, self.bound())
        if choice == 14 and self.may("alias", 1):
            return self.alias(depth)
        if choice < 17:
            return self.union(depth + 1)
        return self.structure(depth + 1)

    def element(self, depth):
        element = inner = self.type(depth + 1)
        while isinstance(inner, (Sequence, Array, Map)):
            inner = inner.value if isinstance(inner, Map) else inner.element
        if inner is not element and isinstance(inner, Definition):
            if not self.may("collection within a collection of named types", 1):
                return self.primitive()
        if isinstance(resolved(element), (Enumeration, Bitmask)) and not self.may("collection of enumerations", 1):
            return self.primitive()
        return element

    def declared(self, depth):
        """A type that a member or an alias may have: an array, too."""
        if self.one_in(5):
            dimensions = [self.random.randrange(1, 5) for _ in range(self.random.choice((1, 1, 2, 3)))]
            element = self.element(depth)
            if isinstance(resolved(element), Array) and not self.may("array of an alias of an array", 1):
                element = self.primitive()
            return Array(element, tuple(dimensions))
        return self.type(depth)

    def map_key(self):
        choice = self.random.randrange(5)
        if choice == 0:
            return String(False, self.random.choice((0, 20)))
        if choice == 1 and "map with enumeration" not in self.left_out:
            return self.enumeration()
        return self.primitive_key()

    def primitive_key(self):
        names = [name for name in INTEGERS if f"map with {name}" not in self.left_out]
        return Primitive(self.random.choice(names))

    def alias(self, depth):
        target = self.declared(depth)
        scope, name = self.named("Alias")
        return self.add(Alias(scope, name, target))

    def enumeration(self):
        if known := self.known(Enumeration):
            return known
        scope, name = self.named("Enum")
        bits = self.random.choice((8, 16, 32, 32, 32))
        if self.may("enumeration of odd bits", 4):
            bits = self.random.choice((3, 5, 12, 20, 31))
        if "enumeration of few bits" in self.left_out:
            bits = 32
        value = -self.random.randrange(1, 4) if self.may("negative literal", 4) else 0
        literals = []
        for number in range(self.random.randrange(1, 6)):
            if value >= 2 ** (bits - 1):
                break
            literals.append((f"{name.upper()}_L{number}", value))
            value += 1 if self.one_in(2) else self.random.randrange(1, 5)
        default = self.random.choice(literals)[0] if self.may("default literal", 3) else None
        if "first literal that is no default" in self.left_out:
            default = literals[0][0]
        return self.add(Enumeration(scope, name, bits, literals, default))

    def bitmask(self):
        if known := self.known(Bitmask):
            return known
        scope, name = self.named("Mask")
        bits = self.random.choice((8, 16, 32, 64, 32))
        if self.may("bitmask of odd bits", 4):
            bits = self.random.choice((1, 3, 12, 20, 33, 63))
        positions = sorted(self.random.sample(range(bits), min(bits, self.random.randrange(1, 7))))
        return self.add(Bitmask(scope, name, bits, [(f"flag_{at}", at) for at in positions]))

    def bitset(self):
        if known := self.known(Bitset):
            return known
        scope, name = self.named("Bits")
        fields, position = [], 0
        for number in range(self.random.randrange(1, 5)):
            position += self.random.choice((0, 0, 0, 2, 5))
            width = self.random.choice((1, 2, 3, 7, 8, 12, 16))
            if position + width > 64:
                break
            kind = None
            if self.one_in(3):
                kind = next(it for it in ("uint8", "uint16") if INTEGERS[it][1] >= 2**width - 1)
            fields.append((f"field_{number}", position, width, kind))
            position += width
        return self.add(Bitset(scope, name, fields))

    def aggregate(self, kind, is_root=False):
        left_out = self.left_out
        choices = [it for it in EXTENSIBILITIES if f"{it} {kind}" not in left_out]
        if not is_root:
            choices = [it for it in choices if f"{it} within another" not in left_out]
        return self.random.choice(choices)

    def ids(self, members, autoid, first):
        """Gives members their ids, as annotations say or as they are counted."""
        taken, next_ = {member.id for member in first}, first[-1].id + 1 if first else 0
        for member in members:
            if autoid == "HASH":
                member.id = hashed_id(member.name)
            else:
                member.id = next_
            if self.may("explicit id", 6):
                member.id, member.is_id_told = next_ + self.random.randrange(30), True
            elif self.may("hash id", 8):
                member.hash_id = self.random.choice(("", f"other_{member.name}"))
                member.id = hashed_id(member.hash_id or member.name)
            if member.id in taken:
                # As good as never: then it is told one that nobody has.
                member.id, member.is_id_told, member.hash_id = max(taken) + 1, True, None
            taken.add(member.id)
            next_ = member.id + 1

    def structure(self, depth, is_root=False):
        if not is_root and (known := self.known(Structure)):
            return known
        base = None
        if self.may("base", 4 if is_root else 8) and depth < DEPTH_MAX:
            base = self.structure(depth + 1)
            if base.base and any(member.key for member in base.all_members) and not self.may("keys of a base's base", 1):
                base = None
        extensibility = base.extensibility if base else self.aggregate("structure", is_root)
        prefix = f"d{len(self.definitions)}_"
        members = []
        for number in range(self.random.randrange(1, 9 if is_root else 5)):
            members.append(self.member(f"{prefix}m{number}", depth))
        autoid = "HASH" if self.may("autoid", 5) else None
        self.ids(members, autoid, base.all_members if base else [])
        for member in members:
            if extensibility == "mutable" and member.must_understand and member.id > 0x3F00:
                member.must_understand = self.may("must_understand with large id", 1)
        nested = not is_root and self.one_in(4)
        scope, name = self.named("Struct")
        definition = Structure(scope, name, extensibility, autoid, nested, base, members)
        if not base and self.one_in(2):
            self.keys(members, extensibility)
        if self.may("recursion", 10):
            self.recursive_member(definition)
        return self.add(definition)

    def member(self, name, depth):
        member = Member(name, self.declared(depth), 0)
        member.optional = self.may("optional", 6)
        member.external = self.may("external", 8)
        member.must_understand = self.may("must_understand", 8)
        if member.optional and member.must_understand and not self.may("optional and must_understand", 1):
            member.must_understand = False
        return member

    def keys(self, members, extensibility):
        for member in members:
            if not member.optional and self.one_in(2) and self.is_key_type(member.type):
                is_large = extensibility == "mutable" and member.id > 0x3F00
                member.key = not is_large or self.may("mutable key with large id", 1)

    def is_key_type(self, ty):
        ty = resolved(ty)
        match ty:
            case Primitive() | String(wide=False) | Enumeration() | Bitmask():
                return True
            case Array():
                return self.is_key_type(ty.element)
            case Structure():
                members = ty.all_members
                if ty.base and not self.may("key of derived type", 1):
                    return False
                if ty.extensibility == "mutable" and not self.may("key of mutable type", 1):
                    return False
                keys = [member for member in members if member.key] or members
                return all(not it.optional and self.is_key_type(it.type) for it in keys)
        return False

    def recursive_member(self, definition):
        highest = max(member.id for member in definition.all_members)
        member = Member(f"again{len(self.definitions)}", None, highest + 1, is_id_told=True)
        if self.one_in(2):
            member.type = Sequence(definition)
        else:
            member.type, member.optional, member.external = definition, True, True
        definition.members.append(member)

    def union(self, depth):
        if known := self.known(Union):
            return known
        discriminator = self.discriminator()
        kind = resolved(discriminator)
        labels = self.labels(kind)
        self.random.shuffle(labels)
        prefix = f"d{len(self.definitions)}_"
        cases = []
        while labels and len(cases) < 4:
            own = [labels.pop() for _ in range(min(len(labels), self.random.choice((1, 1, 2))))]
            cases.append(Case(own, False, self.case_member(f"{prefix}c{len(cases)}", depth)))
        all_values = len(kind.literals) if isinstance(kind, Enumeration) else 2 if kind.name == "boolean" else 3
        if self.may("default", 2) and sum(len(case.labels) for case in cases) < all_values:
            cases.append(Case([], True, self.case_member(f"{prefix}other", depth)))
            if "default of any value" in self.left_out:
                default = default_of_fastdds(cases)
                if not isinstance(kind, Primitive) or kind.name not in INTEGERS or default is None:
                    cases.pop()
        elif self.may("default with label", 6):
            cases[-1].is_default = True
        elif isinstance(kind, Primitive) and kind.name == "boolean" and "union of all values" in self.left_out:
            cases = cases[:1]
            cases[0].labels = cases[0].labels[:1]
        autoid = "HASH" if self.may("autoid of union", 6) else None
        for number, case in enumerate(cases):
            case.member.id = hashed_id(case.member.name) if autoid else number + 1
        extensibility = self.aggregate("union")
        scope, name = self.named("Union")
        is_key = self.may("key discriminator", 6)
        return self.add(Union(scope, name, extensibility, autoid, self.one_in(4), discriminator, is_key, cases))

    def case_member(self, name, depth):
        member = Member(name, self.declared(depth), 0)
        member.external = self.may("external", 8)
        return member

    def discriminator(self):
        choice = self.random.randrange(6)
        if choice == 0:
            return self.enumeration()
        if choice == 1:
            return Primitive("boolean")
        if choice == 2 and self.may("char discriminator", 1):
            return Primitive("char")
        if choice == 3 and self.may("wchar discriminator", 2):
            return Primitive("wchar")
        names = [name for name in INTEGERS if name not in ("int8", "uint8") or "discriminator of 8 bits" not in self.left_out]
        if "discriminator of 64 bits" in self.left_out:
            names = [name for name in names if "64" not in name]
        return Primitive(self.random.choice(names))

    def labels(self, kind):
        match kind:
            case Enumeration():
                return [value for _, value in kind.literals]
            case Primitive(name="boolean"):
                return [False, True]
            case Primitive(name="char" | "wchar"):
                return self.random.sample("abcxyz059", 5)
        low, high = INTEGERS[kind.name]
        low, high = max(low, -(2**31)), min(high, 2**31 - 1)
        if kind.name in ("int8", "int16") and "negative label of few bits" in self.left_out:
            low = 0
        edges = [low, high]
        return list({*edges, *(self.random.randint(max(low, -50), 100) for _ in range(4))})

    # Values

    def samples(self, count):
        samples = []
        for _ in range(count):
            self.parts = 0
            samples.append(self.value(self.root, 0))
        return samples

    def value(self, ty, depth):
        ty = resolved(ty)
        self.parts += 1
        match ty:
            case Primitive():
                return self.number(ty.name)
            case String():
                return self.text(ty)
            case Sequence():
                return [self.value(ty.element, depth) for _ in range(self.count(ty.bound, depth))]
            case Array():
                return self.array(ty.element, ty.dimensions, depth)
            case Map():
                keys = {self.value(ty.key, depth) for _ in range(self.count(ty.bound, depth))}
                keys -= {""} if "map with empty key" in self.left_out else set()
                return [(key, self.value(ty.value, depth)) for key in sorted(keys)]
            case Enumeration():
                return self.random.choice(ty.literals)[1]
            case Bitmask():
                return sum(1 << at for _, at in ty.flags if self.one_in(2))
            case Bitset():
                return {name: self.random.randrange(2**width) for name, _, width, _ in ty.fields}
            case Structure():
                return self.structure_value(ty, depth + 1)
            case Union():
                return self.union_value(ty, depth + 1)
        raise TypeError(ty)

    def count(self, bound, depth):
        if depth > 5 or self.parts > PARTS_MAX:
            return 0
        return self.random.randrange(min(bound or 5, 5) + 1)

    def structure_value(self, ty, depth):
        value = {}
        for member in ty.all_members:
            if member.optional and (depth > 5 or self.parts > PARTS_MAX or self.one_in(2)):
                continue
            value[member.name] = self.value(member.type, depth)
        return value

    def array(self, element, dimensions, depth):
        if not dimensions:
            return self.value(element, depth)
        return [self.array(element, dimensions[1:], depth) for _ in range(dimensions[0])]

    def union_value(self, ty, depth):
        kind = resolved(ty.discriminator)
        known = [label for case in ty.cases for label in case.labels]
        chosen = known if "second label" not in self.left_out else [it.labels[0] for it in ty.cases if it.labels]
        has_default = any(case.is_default for case in ty.cases)
        others = [value for value in self.others(kind) if value not in known]
        if has_default and "default of any value" in self.left_out:
            others = [default_of_fastdds(ty.cases)]
        if not has_default and "union without member" in self.left_out:
            others = []
        pick = others if others and (not known or self.one_in(3)) else chosen
        discriminator = self.random.choice(pick)
        case = ty.case_of(discriminator)
        return Chosen(discriminator, self.value(case.member.type, depth) if case else None)

    def others(self, kind):
        match kind:
            case Enumeration():
                return [value for _, value in kind.literals]
            case Primitive(name="boolean"):
                return [False, True]
            case Primitive(name="char" | "wchar"):
                return list("qrs")
        return [101, 102, 127]

    def text(self, ty):
        count = self.random.choice((0, 1, 3, 4, 5, 12))
        if ty.bound:
            count = min(count, ty.bound)
        # Bounds count characters here and octets there: what has one is plain.
        letters = LETTERS if ty.bound else WIDE_LETTERS
        return "".join(self.random.choice(letters) for _ in range(count))

    def number(self, name):
        if name == "boolean":
            return self.one_in(2)
        if name == "char":
            return self.random.choice(LETTERS)
        if name == "wchar":
            return self.random.choice(WIDE_LETTERS)
        if name == "float32":
            return struct.unpack("f", struct.pack("f", self.float()))[0]
        if name == "float64":
            return self.float()
        low, high = INTEGERS[name]
        return self.random.choice((low, high, 0, 1, self.random.randint(low, high), self.random.randint(low, high)))

    def float(self):
        choice = self.random.randrange(12)
        if choice == 0:
            return self.random.choice((0.0, -0.0, math.inf, -math.inf))
        return self.random.choice((1.5, -2.25, 1e30, -1e-30, self.random.uniform(-1000, 1000)))
