"""Types, values and endpoints of Cyclone DDS's Python package, made at run time."""

import dataclasses
import sys
import time
import types as python_types
from typing import Optional

import model
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlBitmask, annotations, make_idl_bitmask, make_idl_enum, make_idl_struct, make_idl_union, types
from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.sub import DataReader, Subscriber
from cyclonedds.topic import Topic
from cyclonedds.util import duration

BASIC = {
    "int8": types.int8,
    "uint8": types.uint8,
    "octet": types.byte,
    "int16": types.int16,
    "uint16": types.uint16,
    "int32": types.int32,
    "uint32": types.uint32,
    "int64": types.int64,
    "uint64": types.uint64,
    "float32": types.float32,
    "float64": types.float64,
    "boolean": bool,
    "char": types.char,
}
# Where types that contain themselves are looked up by their names.
MODULE = python_types.ModuleType("random_types")
sys.modules[MODULE.__name__] = MODULE


class Types:
    """The classes of one type and of all that it uses."""

    def __init__(self):
        self.made = {}
        self.open = set()

    def type(self, ty):
        match ty:
            case model.Primitive():
                return BASIC[ty.name]
            case model.String():
                return types.bounded_str[ty.bound] if ty.bound else str
            case model.Sequence():
                inner = self.type(ty.element)
                return types.sequence[inner, ty.bound] if ty.bound else types.sequence[inner]
            case model.Array():
                inner = self.type(ty.element)
                for size in reversed(ty.dimensions):
                    inner = types.array[inner, size]
                return inner
        if id(ty) in self.open:
            return class_name(ty)
        if id(ty) not in self.made:
            self.open.add(id(ty))
            self.made[id(ty)] = self.define(ty)
            self.open.discard(id(ty))
        return self.made[id(ty)]

    def define(self, ty):
        name = class_name(ty)
        match ty:
            case model.Alias():
                return types.typedef[ty.full_name.replace("::", "."), self.type(ty.target)]
            case model.Enumeration():
                made = make_idl_enum(name, ty.full_name, dict(ty.literals))
                return annotations.bit_bound(ty.bit_bound)(made) if ty.bit_bound != 32 else made
            case model.Bitmask():
                return bitmask(ty, name)
            case model.Structure():
                return self.structure(ty, name)
            case model.Union():
                return self.union(ty, name)
        raise TypeError(ty)

    def annotated(self, ty, made):
        made = annotations.extensibility(ty.extensibility)(made)
        # These are handed down, and are not those of the base.
        made.__idl_annotations__.pop("nested", None)
        made.__idl_annotations__.pop("autoid", None)
        if ty.nested:
            made = annotations.nested(made)
        if ty.autoid:
            made = annotations.autoid("hash")(made)
        made.__module__ = MODULE.__name__
        setattr(MODULE, made.__name__, made)
        return made

    def structure(self, ty, name):
        base = (self.type(ty.base),) if ty.base else ()
        fields, told = {}, {}
        for member in ty.all_members:
            told[member.name] = {"id": member.id} | member_annotations(member)
        for member in ty.members:
            inner = self.type(member.type)
            fields[member.name] = Optional[inner] if member.optional else inner
        return self.annotated(ty, make_idl_struct(name, ty.full_name, fields, field_annotations=told, bases=base))

    def union(self, ty, name):
        discriminator = self.type(ty.discriminator)
        fields, told = {}, {}
        for case in ty.cases:
            inner = self.type(case.member.type)
            labels = [self.value(ty.discriminator, label) for label in case.labels]
            fields[case.member.name] = types.default[inner] if case.is_default else types.case[labels, inner]
            told[case.member.name] = {"id": case.member.id} | member_annotations(case.member)
        made = make_idl_union(
            name, ty.full_name, fields, discriminator, field_annotations=told, discriminator_is_key=ty.is_key
        )
        return self.annotated(ty, made)

    # Values

    def value(self, ty, value):
        ty_ = model.resolved(ty)
        match ty_:
            case model.Sequence():
                return [self.value(ty_.element, one) for one in value]
            case model.Array():
                return self.array(ty_, value, len(ty_.dimensions))
            case model.Enumeration():
                return self.type(ty_)(value)
            case model.Bitmask():
                return self.type(ty_).from_mask(value)
            case model.Structure():
                members = {member.name: None for member in ty_.all_members}
                members |= {
                    member.name: self.value(member.type, value[member.name])
                    for member in ty_.all_members
                    if member.name in value
                }
                return self.type(ty_)(**members)
            case model.Union():
                case = ty_.case_of(value.discriminator)
                inner = self.value(case.member.type, value.value) if case else None
                return self.type(ty_)(discriminator=self.value(ty_.discriminator, value.discriminator), value=inner)
        return value

    def array(self, ty, value, depth):
        if depth == 1:
            if model.is_octet(ty.element):
                return bytes(value)
            return [self.value(ty.element, one) for one in value]
        return [self.array(ty, one, depth - 1) for one in value]

    def plain(self, ty, value):
        """A value of the package as the model has it."""
        ty = model.resolved(ty)
        match ty:
            case model.Sequence():
                return [self.plain(ty.element, one) for one in value]
            case model.Array():
                return self.plain_array(ty, value, len(ty.dimensions))
            case model.Enumeration():
                return value if isinstance(value, int) else value.value
            case model.Bitmask():
                return value.as_mask()
            case model.Structure():
                members = {member.name: (member, getattr(value, member.name)) for member in ty.all_members}
                return {
                    name: self.plain(member.type, one)
                    for name, (member, one) in members.items()
                    if one is not None or not member.optional
                }
            case model.Union():
                discriminator, inner = value.get()
                discriminator = self.plain(ty.discriminator, discriminator)
                case = ty.case_of(discriminator)
                return model.Chosen(discriminator, self.plain(case.member.type, inner) if case else inner)
        return value

    def plain_array(self, ty, value, depth):
        if depth == 1:
            return [self.plain(ty.element, one) for one in value]
        return [self.plain_array(ty, one, depth - 1) for one in value]


def class_name(ty):
    return ty.full_name.replace("::", "_")


def member_annotations(member):
    told = {}
    if member.key:
        # By XTypes 1.3 §7.2.2.4.4.4.8 one follows from the other, which the package leaves to who uses it.
        told |= {"key": True, "must_understand": True}
    if member.must_understand:
        told["must_understand"] = True
    if member.external:
        told["external"] = True
    return told


def bitmask(ty, name):
    told = {flag: {"position": position} for flag, position in ty.flags}
    if ty.bit_bound <= 32:
        made = make_idl_bitmask(name, ty.full_name, [flag for flag, _ in ty.flags], field_annotations=told)
        return annotations.bit_bound(ty.bit_bound)(made)
    # Positions are checked before a class can be annotated.
    meta = type(IdlBitmask)
    namespace = meta.__prepare__(name, (IdlBitmask,), typename=ty.full_name)
    namespace["__annotations__"] = {flag: bool for flag, _ in ty.flags}
    namespace["__idl_annotations__"]["bit_bound"] = ty.bit_bound
    namespace["__idl_field_annotations__"] = told
    return dataclasses.dataclass(meta(name, (IdlBitmask,), namespace))


class Peer:
    """The endpoints of one batch."""

    def __init__(self, domain):
        self.domain = domain

    def open(self):
        self.participant = DomainParticipant(self.domain)
        self.publisher, self.subscriber = Publisher(self.participant), Subscriber(self.participant)
        self.entities = []

    def begin(self, exchange):
        """Writes samples, and has a reader."""
        qos = Qos(
            Policy.Reliability.Reliable(duration(seconds=10)),
            Policy.Durability.TransientLocal,
            Policy.History.KeepAll,
            Policy.DurabilityService(0, Policy.History.KeepAll, -1, -1, -1),
            Policy.DataRepresentation(
                use_cdrv0_representation=exchange.version == 1, use_xcdrv2_representation=exchange.version == 2
            ),
        )
        root = exchange.generator.root
        exchange.generator.types = types_ = getattr(exchange.generator, "types", None) or Types()
        made = types_.type(root)
        written = Topic(self.participant, f"{exchange.name}/{exchange.written}", made)
        read = Topic(self.participant, f"{exchange.name}/{exchange.read}", made)
        writer = DataWriter(self.publisher, written, qos=qos)
        exchange.reader = DataReader(self.subscriber, read, qos=qos)
        self.entities += [written, read, writer]
        for sample in exchange.samples:
            writer.write(types_.value(root, sample))

    def read(self, exchanges, deadline):
        """Reads until all is there or time is over."""
        left = [exchange for exchange in exchanges if exchange.reader]
        while left and time.monotonic() < deadline:
            for exchange in left:
                try:
                    for sample in exchange.reader.take(N=32):
                        plain = exchange.generator.types.plain(exchange.generator.root, sample)
                        exchange.received.append(plain)
                except Exception as error:
                    exchange.problems.append(f"peer reads: {type(error).__name__}: {error}: {error.__cause__}")
            left = [it for it in left if len(it.received) < len(it.samples) and not it.problems]
            time.sleep(0.005)
        for exchange in exchanges:
            exchange.reader = None

    def close(self):
        self.entities.clear()
        del self.publisher, self.subscriber, self.participant
