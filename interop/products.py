"""The products, how to start their shapes applications, and what they cannot do."""

import os
import pathlib
import shutil


class Product:
    def __init__(self, name, command, lacks=None, environment=None):
        self.name = name
        self.command = [str(word) for word in command]
        # What it cannot do: tag of a case or variant -> reason. A tag of one role alone is written
        # `subscriber:tag`.
        self.lacks = lacks or {}
        self.environment = environment or {}

    def can(self, role, tag):
        return tag not in self.lacks and f"{role}:{tag}" not in self.lacks

    def is_there(self):
        return shutil.which(self.command[0]) is not None


# Pairs that cannot do something together though each can with others:
# (publisher, subscriber) -> {tag: reason}.
CYCLONE_TO_FAST = {
    "farewell": "Fast DDS ignores key-only data without a key hash, which is how Cyclone says goodbye",
    "final": "Fast DDS ignores key-only data without a key hash",
    "killed": "Fast DDS keeps the writer until its own lease check",
}
FAST_TO_CYCLONE = {
    "final": "Fast DDS sends an MD5 key hash only, from which Cyclone cannot know the instance",
    "subscriber_leaves": "Fast DDS ignores key-only data, which is how Cyclone says goodbye",
    "reliable_instances": "samples of the first second go missing now and then",
}
CYCLONE_TO_CYCLONE = {
    "dispose -x 2": "0.10 and 11 write the key of an appendable type in different forms",
}
PLAINSONG_TO_CYCLONE_0_10 = {
    "dispose -x 2": "0.10 wants the key of an appendable type without the DHEADER of XTypes 7.4.3.5",
}
TOGETHER = {
    ("plainsong", "cyclone_c"): PLAINSONG_TO_CYCLONE_0_10,
    ("cyclone_c", "cyclone_python"): CYCLONE_TO_CYCLONE,
    ("cyclone_python", "cyclone_c"): CYCLONE_TO_CYCLONE,
    ("cyclone_c", "fastdds_cpp"): CYCLONE_TO_FAST,
    ("cyclone_python", "fastdds_cpp"): CYCLONE_TO_FAST,
    ("fastdds_cpp", "cyclone_c"): FAST_TO_CYCLONE,
    ("fastdds_cpp", "cyclone_python"): FAST_TO_CYCLONE,
}


# One product can play each part of this: Cyclone in Python makes types at run time.
NO_OTHER_TYPE = {"subscriber:other_type": "its shapes application knows one type"}
LEARNS_NOTHING = {"subscriber:learns_type": "its shapes application knows its type"}
EXPLAINS_NOTHING = {"publisher:explains": "it does not say why endpoints do not match"}
NO_TIME_FILTER = {"subscriber:time_filter": "its shapes application has no such option"}
# CONSISTENCY is a policy of Plainsong: of the others there are readers and writers with EVENTUAL consistency.
NOT_ATOMIC = {
    "publisher:atomic_writer": "it has no CONSISTENCY",
    "subscriber:atomic_reader": "it has no CONSISTENCY",
}
# The tools of Plainsong learn the type of a topic from the wire; another product makes the topic.
NO_TELEMETRY = {
    "publisher:telemetry_writer": "its shapes application knows one type",
    "subscriber:telemetry_reader": "its shapes application knows one type",
}
NO_TOOLS = {
    "publisher:recorded_by_others": "the tools are those of Plainsong",
    "subscriber:telemetry_writer": "the tools are those of Plainsong",
    "publisher:telemetry_reader": "the tools are those of Plainsong",
}
CYCLONE_LACKS = {
    **NO_TOOLS,
    **NOT_ATOMIC,
    **NO_TIME_FILTER,
    **EXPLAINS_NOTHING,
    "subscriber:expression": "Cyclone filters by functions, not by expressions",
}


# Plainsong with itself, by each of its transports. To others it always talks by UDP.
OWN = ("plainsong", "plainsong_udp")


def table(plainsong, peers_directory):
    """Every product by name, Plainsong first."""
    peers = pathlib.Path(peers_directory).absolute()
    command, lacks = [pathlib.Path(plainsong).absolute(), "shapes"], {**NO_OTHER_TYPE, **LEARNS_NOTHING, **NO_TELEMETRY}
    products = [
        Product("plainsong", command, lacks, {"PLAINSONG_SHARED_MEMORY": "auto"}),
        Product("plainsong_udp", command, lacks, {"PLAINSONG_SHARED_MEMORY": "off"}),
        Product("cyclone_c", [peers / "cyclone_c"], lacks={**CYCLONE_LACKS, **NO_OTHER_TYPE, **LEARNS_NOTHING, **NO_TELEMETRY}),
        Product("cyclone_python", [peers / "cyclone_python"], lacks=CYCLONE_LACKS),
        Product(
            "fastdds_cpp",
            [peers / "fastdds_cpp"],
            lacks={
                **NOT_ATOMIC,
                **NO_TELEMETRY,
                **NO_TOOLS,
                **NO_TIME_FILTER,
                **EXPLAINS_NOTHING,
                **NO_OTHER_TYPE,
                **LEARNS_NOTHING,
                "-x 2": "Fast DDS 2.9 knows XCDR1 only",
                "representation": "Fast DDS 2.9 knows XCDR1 only",
                "filtered_end": "its filters refuse what has no data, such as the end of an instance",
                "subscriber:lifespan": "its reader does not expire samples of others",
                "subscriber:no_writers": "its reader says nothing when the last writer goes",
            },
        ),
    ]
    return {product.name: product for product in products}


def find(products, name):
    """A product by name, or any executable."""
    unknown = {
        "shares_memory": "whether it shares memory is not known",
        **NOT_ATOMIC,
        **NO_TELEMETRY,
        **NO_TOOLS,
    }
    return products.get(name) or Product(os.path.basename(name), name.split(), lacks=unknown)


def gap(case, variant, publisher, subscriber):
    """Why the two cannot run the case, or None."""
    together = TOGETHER.get((publisher.name, subscriber.name), {})
    for tag in {case.name, variant, f"{case.name} {variant}", *case.tags}:
        for role, product in (("publisher", publisher), ("subscriber", subscriber)):
            if not product.can(role, tag):
                return product.lacks.get(tag) or product.lacks[f"{role}:{tag}"]
        if tag in together:
            return together[tag]
    return None
