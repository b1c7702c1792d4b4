"""A type that no program of Plainsong has, for its tools that learn types from the wire: it has a bit of everything."""

from dataclasses import dataclass, field
from typing import Optional

from cyclonedds import idl
from cyclonedds.idl import annotations, types


class Mode(idl.IdlEnum, typename="lab.Mode"):
    IDLE = 0
    MOVING = 1


@dataclass
class Position(idl.IdlStruct, typename="lab.Position"):
    x: types.float64
    y: types.float64


# In XCDR1 it cannot write a union that is appendable.
@annotations.final
class Fault(idl.IdlUnion, discriminator=types.int32, typename="lab.Fault"):
    code: types.case[1, types.int32]
    text: types.case[[2, 3], str]


@dataclass
@annotations.mutable
class Battery(idl.IdlStruct, typename="lab.Battery"):
    charge: types.float32
    cells: types.sequence[types.uint16]


@dataclass
@annotations.appendable
class Telemetry(idl.IdlStruct, typename="lab.Telemetry"):
    robot: str
    annotations.key("robot")
    count: types.uint64
    mode: Mode
    position: Position
    track: types.sequence[Position]
    volts: types.array[types.float32, 3]
    image: types.sequence[types.uint8]
    fault: Fault
    battery: Battery
    note: Optional[str] = field(default=None)


def sample(count):
    """The sample with this number."""
    return Telemetry(
        robot="R2",
        count=2**63 + count,
        mode=Mode.MOVING,
        position=Position(1.5, -2.0),
        track=[Position(0.0, 0.25), Position(float("inf"), 0.5)],
        volts=[0.5, 1.5, 2.5],
        image=[255, 254, 0, 7],
        fault=Fault(text="hot") if count % 2 else Fault(code=7),
        battery=Battery(0.75, [1, 65535]),
        note="odd" if count % 2 else None,
    )
