"""A shapes application on Eclipse Cyclone DDS, Python API (PyPI package `cyclonedds`)."""

import argparse
import random
import signal
import sys
import threading
import time
from dataclasses import dataclass

import telemetry
from cyclonedds import idl
from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
from cyclonedds.core import InstanceState, Listener, Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.dynamic import get_types_for_typeid
from cyclonedds.idl import annotations, types
from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.sub import DataReader, Subscriber
from cyclonedds.topic import Topic
from cyclonedds.util import duration

WIDTH, HEIGHT = 240, 270
POLICIES = (
    "INVALID USERDATA DURABILITY PRESENTATION DEADLINE LATENCYBUDGET OWNERSHIP OWNERSHIPSTRENGTH "
    "LIVELINESS TIMEBASEDFILTER PARTITION RELIABILITY DESTINATIONORDER HISTORY RESOURCELIMITS "
    "ENTITYFACTORY WRITERDATALIFECYCLE READERDATALIFECYCLE TOPICDATA GROUPDATA TRANSPORTPRIORITY "
    "LIFESPAN DURABILITYSERVICE DATAREPRESENTATION TYPECONSISTENCYENFORCEMENT"
).split()
STATES = {
    InstanceState.NotAliveDisposed: "NOT_ALIVE_DISPOSED_INSTANCE_STATE",
    InstanceState.NotAliveNoWriters: "NOT_ALIVE_NO_WRITERS_INSTANCE_STATE",
}
# Cyclone numbers some policies of its own before these; the values are those of the DDS specification.
RENUMBERED = {25: 23}
stopped = False
saying = threading.RLock()


@dataclass
@annotations.appendable
class ShapeType(idl.IdlStruct, typename="ShapeType"):
    color: types.bounded_str[128]
    annotations.key("color")
    x: types.int32
    y: types.int32
    shapesize: types.int32
    additional_payload_size: types.sequence[types.uint8]


@dataclass
@annotations.appendable
class OtherShapeType(idl.IdlStruct, typename="ShapeType"):
    color: types.bounded_str[128]
    annotations.key("color")
    x: types.int32
    y: types.int32
    shapesize: types.float64
    additional_payload_size: types.sequence[types.uint8]


def stop(_signal, _frame):
    global stopped
    stopped = True


def say(line):
    # Listeners have a thread of their own: one call a line, or two lines mix.
    with saying:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def say_sample(topic, shape):
    line = f"{topic:<10} {shape.color:<10} {shape.x:03d} {shape.y:03d} [{shape.shapesize}]"
    payload = shape.additional_payload_size
    say(f"{line} {{{payload[-1]}}}" if payload else line)


def sleep_ms(period_ms):
    end = time.monotonic() + period_ms / 1000
    while not stopped and (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 0.02))


class Reporter(Listener):
    """Prints statuses; hangs on the participant."""

    def __init__(self, topic):
        super().__init__()
        self.names = f"topic: '{topic}'  type: 'ShapeType'"

    def say(self, event, rest):
        say(f"{event}() {self.names} : {rest}")

    def on_publication_matched(self, _writer, status):
        change = status.current_count_change
        self.say("on_publication_matched", f"matched readers {status.current_count} (change = {change})")

    def on_subscription_matched(self, _reader, status):
        change = status.current_count_change
        self.say("on_subscription_matched", f"matched writers {status.current_count} (change = {change})")

    def on_offered_incompatible_qos(self, _writer, status):
        policy = RENUMBERED.get(status.last_policy_id, status.last_policy_id)
        self.say("on_offered_incompatible_qos", f"{policy} ({policy_name(policy)})")

    def on_requested_incompatible_qos(self, _reader, status):
        policy = RENUMBERED.get(status.last_policy_id, status.last_policy_id)
        self.say("on_requested_incompatible_qos", f"{policy} ({policy_name(policy)})")

    def on_offered_deadline_missed(self, _writer, status):
        self.say("on_offered_deadline_missed", counts(status))

    def on_requested_deadline_missed(self, _reader, status):
        self.say("on_requested_deadline_missed", counts(status))

    def on_liveliness_lost(self, _writer, status):
        self.say("on_liveliness_lost", counts(status))

    def on_liveliness_changed(self, _reader, status):
        alive, not_alive = status.alive_count, status.not_alive_count
        self.say("on_liveliness_changed", f"(alive = {alive}, not_alive = {not_alive})")


def counts(status):
    return f"(total = {status.total_count}, change = {status.total_count_change})"


def policy_name(number):
    return POLICIES[number] if 0 < number < len(POLICIES) else "UNKNOWN"


def parse():
    parser = argparse.ArgumentParser(add_help=False)
    role = parser.add_mutually_exclusive_group(required=True)
    role.add_argument("-P", dest="publish", action="store_true")
    role.add_argument("-S", dest="subscribe", action="store_true")
    reliability = parser.add_mutually_exclusive_group()
    reliability.add_argument("-b", dest="best_effort", action="store_true")
    reliability.add_argument("-r", dest="best_effort", action="store_false")
    parser.add_argument("-d", dest="domain", type=int, default=0)
    parser.add_argument("-k", dest="depth", type=int, default=-1)
    parser.add_argument("-f", dest="deadline_ms", type=int, default=0)
    parser.add_argument("-s", dest="strength", type=int, default=-1)
    parser.add_argument("-t", dest="topic", default="Square")
    parser.add_argument("-c", dest="color")
    parser.add_argument("-p", dest="partition")
    parser.add_argument("-D", dest="durability", choices="vltp", default="v")
    parser.add_argument("-x", dest="representation", type=int, choices=(1, 2), default=1)
    parser.add_argument("-w", dest="print_written", action="store_true")
    parser.add_argument("-z", dest="size", type=int, default=20)
    parser.add_argument("--size-modulo", type=int, default=0)
    parser.add_argument("--write-period", type=int, default=33)
    parser.add_argument("--read-period", type=int, default=100)
    parser.add_argument("--lifespan", type=int, default=0)
    parser.add_argument("--num-iterations", type=int, default=0)
    parser.add_argument("--num-instances", type=int, default=1)
    parser.add_argument("--final-instance-state", choices="ud")
    parser.add_argument("--additional-payload-size", type=int, default=0)
    # A type of the same name whose sizes are floating-point numbers.
    parser.add_argument("--other-type", action="store_true")
    parser.add_argument("--learn-type", action="store_true")
    # Instead of shapes a type with a bit of everything.
    parser.add_argument("--telemetry", action="store_true")
    parser.set_defaults(best_effort=False)
    options, unknown = parser.parse_known_args()
    if unknown:
        say(f"{unknown[0]} is not supported")
        sys.exit(2)
    return options


def endpoint_qos(options):
    durability = {
        "v": Policy.Durability.Volatile,
        "l": Policy.Durability.TransientLocal,
        "t": Policy.Durability.Transient,
        "p": Policy.Durability.Persistent,
    }[options.durability]
    policies = [
        Policy.Reliability.BestEffort
        if options.best_effort
        else Policy.Reliability.Reliable(duration(seconds=10)),
        durability,
        Policy.DataRepresentation(
            use_cdrv0_representation=options.representation == 1,
            use_xcdrv2_representation=options.representation == 2,
        ),
    ]
    history = None
    if options.depth == 0:
        history = Policy.History.KeepAll
    elif options.depth > 0:
        history = Policy.History.KeepLast(options.depth)
    if history is not None:
        policies.append(history)
    if durability is not Policy.Durability.Volatile:
        kept = history or Policy.History.KeepLast(1)
        policies.append(Policy.DurabilityService(0, kept, -1, -1, -1))
    if options.deadline_ms > 0:
        policies.append(Policy.Deadline(duration(milliseconds=options.deadline_ms)))
    if options.strength >= 0:
        policies.append(Policy.Ownership.Exclusive)
    if options.publish:
        if options.strength >= 0:
            policies.append(Policy.OwnershipStrength(options.strength))
        if options.lifespan > 0:
            policies.append(Policy.Lifespan(duration(milliseconds=options.lifespan)))
        # Disposed when asked to, not on leaving.
        policies.append(Policy.WriterDataLifecycle(autodispose=False))
    return Qos(*policies)


def group_qos(options):
    return Qos(Policy.Partition([options.partition])) if options.partition is not None else Qos()


def color_of(options, index):
    return f"{options.color or 'BLUE'}{index if index else ''}"


def bounce(position, step, limit):
    moved = position + step
    if 0 <= moved <= limit:
        return moved, step
    return min(max(moved, 0), limit), -step


def publish(options, participant, topic):
    publisher = Publisher(participant, qos=group_qos(options))
    # Its listener is told of it, maybe at once: said before.
    say(f"Create writer for topic: {options.topic} color: {options.color or 'BLUE'}")
    writer = DataWriter(publisher, topic, qos=endpoint_qos(options))
    x, y = random.randrange(WIDTH), random.randrange(HEIGHT)
    x_step, y_step = random.randint(1, 5), random.randint(1, 5)
    size = options.size
    payload = [255] * options.additional_payload_size
    written = 0
    while not stopped and (options.num_iterations == 0 or written < options.num_iterations):
        x, x_step = bounce(x, x_step, WIDTH)
        y, y_step = bounce(y, y_step, HEIGHT)
        if options.size == 0:
            size = (size % options.size_modulo if options.size_modulo else size) + 1
        for index in range(options.num_instances):
            shape = ShapeType(color_of(options, index), x, y, size, payload)
            writer.write(shape)
            if options.print_written:
                say_sample(options.topic, shape)
        written += 1
        sleep_ms(options.write_period)
    for index in range(options.num_instances):
        last = ShapeType(color_of(options, index), x, y, size, [])
        if options.final_instance_state == "d":
            writer.dispose(last)
        elif options.final_instance_state == "u":
            writer.unregister_instance_handle(writer.lookup_instance(last))
    writer.wait_for_acks(duration(seconds=1))


def take_all(options, reader, colors):
    """Takes and prints what is there. `colors` names instances, for samples without data."""
    while samples := reader.take(N=32):
        for sample in samples:
            info = sample.sample_info
            if info.valid_data:
                colors[info.instance_handle] = sample.color
            color = colors.get(info.instance_handle) or getattr(sample, "color", "")
            if options.color and options.color != color:
                continue
            if info.valid_data:
                say_sample(options.topic, sample)
            state = STATES.get(info.instance_state)
            if state and info.sample_rank == 0:
                say(f"{options.topic:<10} {color:<10} {state}")


def subscribe(options, participant, topic):
    subscriber = Subscriber(participant, qos=group_qos(options))
    # Its listener is told of it, maybe at once: said before.
    say(f"Create reader for topic: {options.topic}")
    reader = DataReader(subscriber, topic, qos=endpoint_qos(options))
    iterations, colors = 0, {}
    while not stopped and (options.num_iterations == 0 or iterations < options.num_iterations):
        take_all(options, reader, colors)
        iterations += 1
        sleep_ms(options.read_period)


def learned_type(participant, topic):
    """The type of the topic as its publisher tells it, which is how Cyclone's own tools come to know one."""
    reader = BuiltinDataReader(participant, BuiltinTopicDcpsPublication)
    while not stopped:
        for publication in reader.read(N=32):
            told = getattr(publication, "type_id", None)
            if publication.topic_name == topic and told is not None:
                learned, _ = get_types_for_typeid(participant, told, duration(seconds=5))
                members = ", ".join(learned.__annotations__)
                say(f"learned type {learned.__idl__.idl_transformed_typename}: {members}")
                return learned
        sleep_ms(50)
    return ShapeType


def publish_telemetry(options, participant, topic):
    writer = DataWriter(Publisher(participant, qos=group_qos(options)), topic, qos=endpoint_qos(options))
    count = 0
    while not stopped:
        writer.write(telemetry.sample(count))
        count += 1
        sleep_ms(options.write_period)


def subscribe_telemetry(options, participant, topic):
    reader = DataReader(Subscriber(participant, qos=group_qos(options)), topic, qos=endpoint_qos(options))
    while not stopped:
        for sample in reader.take(N=32):
            if sample.sample_info.valid_data:
                say(repr(sample))
        sleep_ms(options.read_period)


def main():
    options = parse()
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    participant = DomainParticipant(options.domain, listener=Reporter(options.topic))
    shape_type = OtherShapeType if options.other_type else ShapeType
    if options.learn_type:
        shape_type = learned_type(participant, options.topic)
    if options.telemetry:
        shape_type = telemetry.Telemetry
    topic = Topic(participant, options.topic, shape_type)
    say(f"Create topic: {options.topic}")
    if options.telemetry:
        (publish_telemetry if options.publish else subscribe_telemetry)(options, participant, topic)
    else:
        (publish if options.publish else subscribe)(options, participant, topic)
    # Without listeners, so that none is called while the interpreter goes down.
    participant.set_listener(None)
    say("Done.")


if __name__ == "__main__":
    main()
