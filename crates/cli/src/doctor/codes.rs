//! What `plainsong doctor` can find: one row for each code. `docs/doctor.md` prints this table.

use std::fmt;

use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Something does not arrive.
    Error,
    /// Something may not arrive, or not as fast as it could.
    Warning,
    /// Worth knowing.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

/// A kind of finding.
#[derive(Debug)]
pub(crate) struct Code {
    /// Never changes its meaning.
    pub(crate) name: &'static str,
    /// As long as nothing makes it better or worse.
    pub(crate) severity: Severity,
    /// What it means, for the page.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares it with the page"))]
    pub(crate) meaning: &'static str,
    /// What to do about it.
    pub(crate) cure: &'static str,
}

macro_rules! codes {
    ($($constant:ident $name:literal $severity:ident: $meaning:literal; $cure:literal)*) => {
        $(pub(crate) const $constant: &Code = &Code {
            name: $name,
            severity: Severity::$severity,
            meaning: $meaning,
            cure: $cure,
        };)*
        /// All of them, in the order of the page.
        #[cfg(test)]
        pub(crate) const ALL: &[&Code] = &[$($constant),*];
    };
}

codes! {
    NOBODY_HEARD "nobody-heard" Warning:
        "No other participant is heard in the domain.";
        "Start the others, use their domain id, or let their datagrams through: other findings say more"
    NOT_ANSWERING "participant-not-answering" Error:
        "A participant is heard, but does not answer where it says that it is: datagrams go one way only.";
        "Let datagrams through to it, or let it announce an address at which it can be reached"
    SECURED "participant-secured" Error:
        "A participant announces DDS Security, and none of its endpoints is told: it talks only to those that authenticate.";
        "Run it without DDS Security, or with a governance document that admits unauthenticated participants"
    OTHER_DOMAIN "other-domain" Note:
        "Participants are heard in another domain. A warning where this one is empty or lacks a writer or reader.";
        "Give all of them the same domain id"
    OTHER_TAG "other-domain-tag" Warning:
        "A participant in this domain has a domain tag: those with another tag, or none, ignore it.";
        "Give all of them the same domain tag, or none"
    TYPE_NAME "type-name" Warning:
        "A writer and a reader of one topic have types of different names.";
        "Register the type under one name on both sides, or use another topic for the other type"
    TYPE "type" Warning:
        "Types of one name differ; the first member that differs is named.";
        "Define the type alike on both sides, or use another topic for the other type"
    TYPE_INFORMATION "type-information" Warning:
        "The reader matches only with type information, and there is none.";
        "Set the reader's force_type_validation to false, or have both participants tell their types"
    KEY "key" Warning:
        "One of the types has a key, the other has none.";
        "Mark the same members of the type as key on both sides, or none on either"
    PARTITION "partition" Note:
        "A writer and a reader have no partition in common. A warning where the reader has no other writer.";
        "Add a partition of one side to the other"
    QOS_DURABILITY "qos-durability" Warning:
        "The reader wants samples from before it came to a degree that the writer does not offer.";
        "Set the reader's DURABILITY to what the writer has, or raise the writer's"
    QOS_PRESENTATION "qos-presentation" Warning:
        "The subscriber wants coherent or ordered access that the publisher does not offer.";
        "Lower the subscriber's PRESENTATION or raise the publisher's"
    QOS_DEADLINE "qos-deadline" Warning:
        "The writer promises samples less often than the reader wants them.";
        "Set the reader's DEADLINE to at least the writer's, or shorten the writer's"
    QOS_LATENCY_BUDGET "qos-latency-budget" Warning:
        "The writer takes more time to send than the reader grants.";
        "Set the reader's LATENCY_BUDGET to at least the writer's, or shorten the writer's"
    QOS_OWNERSHIP "qos-ownership" Warning:
        "One side has SHARED ownership, the other EXCLUSIVE.";
        "Set OWNERSHIP alike on both sides"
    QOS_LIVELINESS "qos-liveliness" Warning:
        "The writer asserts its liveliness in a weaker way, or less often, than the reader wants.";
        "Lower the reader's LIVELINESS or raise the writer's"
    QOS_RELIABILITY "qos-reliability" Warning:
        "The writer is BEST_EFFORT, the reader wants RELIABLE.";
        "Set the reader's RELIABILITY to BEST_EFFORT or the writer's to RELIABLE"
    QOS_DESTINATION_ORDER "qos-destination-order" Warning:
        "The reader wants an order by source timestamps that the writer does not offer.";
        "Set DESTINATION_ORDER alike on both sides"
    QOS_DATA_REPRESENTATION "qos-data-representation" Warning:
        "The writer encodes samples as the reader does not accept: XCDR1 or XCDR2.";
        "Add the writer's representation to the reader's DATA_REPRESENTATION, or let the writer begin with the reader's"
    QOS_CONSISTENCY "qos-consistency" Warning:
        "The reader wants CONSISTENCY ATOMIC, the writer does not offer it.";
        "Set CONSISTENCY alike on both sides; Plainsong alone offers ATOMIC"
    QOS_OTHER "qos" Warning:
        "Another policy of the writer falls short of what the reader requests.";
        "As the finding says"
    READER_STARVED "reader-starved" Error:
        "A reader receives nothing: its topic has writers, and none of them matches.";
        "Cure one of the mismatches of the topic, which are findings of their own"
    READER_NOTHING "reader-receives-nothing" Warning:
        "A reader of Plainsong was never given a sample, though writers that match it wrote some while doctor looked.";
        "See whether a content filter wants none; else compare the drops of the reader and of the sockets of its host"
    READER_ALONE "reader-without-writer" Note:
        "Nobody writes the topic of a reader.";
        "Start the writer; compare the names of topics, and the domain"
    WRITER_ALONE "writer-without-reader" Note:
        "Nobody reads the topic of a writer.";
        "Start the reader; compare the names of topics, and the domain"
    TOPIC_ROS_PREFIX "topic-ros-prefix" Warning:
        "Two topics have one name but for the prefix that ROS 2 adds (rt/, rq/, rr/, rs/). A note where each has both sides.";
        "Name the topic as ROS 2 does on the wire, with its prefix, or avoid_ros_namespace_conventions in the ROS node"
    TOPIC_SLASH "topic-slash" Warning:
        "Two topics have one name but for a slash at the beginning. A note where each has both sides.";
        "Use one name; in DDS a leading slash belongs to the name"
    TOPIC_CASE "topic-case" Warning:
        "Two topics have one name but for upper and lower case. A note where each has both sides.";
        "Use one name; names of topics are compared letter by letter"
    INTERFACE_MISSING "interface-missing" Warning:
        "PLAINSONG_INTERFACES names what is no interface or address of this host.";
        "Name interfaces or addresses that there are"
    NO_NETWORK "no-network" Warning:
        "No interface but loopback is usable: participants of other hosts are not reached.";
        "Bring an interface up, or give it an address"
    MULTICAST_OFF "multicast-off" Note:
        "PLAINSONG_MULTICAST=off: participants of other hosts are found only if PLAINSONG_PEERS names them.";
        "Set PLAINSONG_MULTICAST=on, or name the peers"
    MULTICAST_BLOCKED "multicast-blocked" Warning:
        "A datagram to the discovery group of the domain did not come back on an interface. On loopback a note where another interface works.";
        "Let UDP to 239.255.0.1 and the port of the domain through, or name the other hosts in PLAINSONG_PEERS"
    PORT_TAKEN "port-taken" Error:
        "Another process has the discovery port of the domain and does not share it: this host hears no announcements by multicast.";
        "End that process, or use another domain"
    PORTS_EPHEMERAL "ports-ephemeral" Warning:
        "The ports of the domain lie where the kernel chooses ports for anybody: any program may have taken one.";
        "Use a domain id below 101, or reserve the ports by net.ipv4.ip_local_reserved_ports"
    RECEIVE_BUFFER_SMALL "receive-buffer-small" Note:
        "The kernel grants a socket less than PLAINSONG_RECEIVE_BUFFER_BYTES asks for. A warning below 128 KiB, which one burst of fragments fills.";
        "Raise net.core.rmem_max: sysctl -w net.core.rmem_max=8388608"
    SEND_BUFFER_SMALL "send-buffer-small" Note:
        "The kernel grants a socket less than PLAINSONG_SEND_BUFFER_BYTES asks for. A warning below 128 KiB.";
        "Raise net.core.wmem_max: sysctl -w net.core.wmem_max=4194304"
    SOCKET_OVERFLOW "socket-overflow" Warning:
        "The kernel dropped datagrams of a process since its receive buffer was full, counted since the socket was opened.";
        "Raise net.core.rmem_max and what the process asks for, or find out why it reads too slowly"
    MEMORY_OFF "memory-off" Note:
        "This process shares no memory, so it cannot tell whether others would.";
        "Run it with PLAINSONG_SHARED_MEMORY=auto, on Linux"
    MEMORY_REFUSED "memory-refused" Warning:
        "A participant of Plainsong on this host does not share memory with this process: they talk by UDP.";
        "As the finding says, by the reason"
    MEMORY_LIMIT "memory-limit" Warning:
        "A limit of this process leaves little for shared memory: open files, or locked or total memory.";
        "Raise the limit: ulimit -n, or LimitNOFILE= of the service"
    CLOCK_WRONG "clock-wrong" Warning:
        "The wall clock of this host is before 2024: timestamps of samples are wrong, and LIFESPAN ends them at others.";
        "Set the clock, by NTP or PTP"
    CLOCK_AHEAD "clock-ahead" Warning:
        "A participant announces itself with a time that is yet to come by the clock of this host.";
        "Synchronise the clocks of both hosts, by NTP or PTP: LIFESPAN and the order by source timestamps depend on them"
    FIREWALL_DROPS "firewall-drops" Warning:
        "A rule of nftables or iptables drops UDP datagrams to ports of the domain, or a chain does by default.";
        "Accept UDP to the ports of the domain, and to 239.255.0.1"
    DROPPED "dropped" Warning:
        "A participant, writer or reader of Plainsong tells that it dropped datagrams or samples, by DropReason.";
        "As the finding says, by the reason"
    DATAGRAMS_REFUSED "datagrams-refused" Note:
        "This process dropped datagrams that it could not use, by DropReason.";
        "As the finding says, by the reason"
    LEFT_OUT "left-out" Note:
        "There are more participants, endpoints or pairs than doctor looks at.";
        "Look at a smaller domain"
}

/// The code of a difference in that subject: of a policy, or of types.
pub(crate) fn of_subject(subject: &str) -> &'static Code {
    match subject {
        "type name" => TYPE_NAME,
        "type" => TYPE,
        "TYPE_CONSISTENCY_ENFORCEMENT" => TYPE_INFORMATION,
        "key" => KEY,
        "PARTITION" => PARTITION,
        "DURABILITY" => QOS_DURABILITY,
        "PRESENTATION" => QOS_PRESENTATION,
        "DEADLINE" => QOS_DEADLINE,
        "LATENCY_BUDGET" => QOS_LATENCY_BUDGET,
        "OWNERSHIP" => QOS_OWNERSHIP,
        "LIVELINESS" => QOS_LIVELINESS,
        "RELIABILITY" => QOS_RELIABILITY,
        "DESTINATION_ORDER" => QOS_DESTINATION_ORDER,
        "DATA_REPRESENTATION" => QOS_DATA_REPRESENTATION,
        "CONSISTENCY" => QOS_CONSISTENCY,
        _ => QOS_OTHER,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    use plainsong::qos::POLICIES;

    use super::*;

    const BEGIN: &str = "<!-- codes: begin -->\n";
    const END: &str = "<!-- codes: end -->\n";

    #[test]
    fn codes_are_unique_and_each_policy_that_is_compared_has_one() {
        let names: BTreeSet<_> = ALL.iter().map(|code| code.name).collect();
        assert_eq!(names.len(), ALL.len());
        for policy in POLICIES.iter().filter(|policy| policy.is_requested()) {
            let code = of_subject(policy.name);
            let name = policy.name.to_ascii_lowercase().replace('_', "-");
            assert_eq!(code.name, format!("qos-{name}"));
        }
    }

    /// `RECORD=1` writes it anew.
    #[test]
    fn the_page_has_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once(BEGIN).expect("the table begins");
        let (_, after) = rest.split_once(END).expect("the table ends");
        let mut table = "| code | severity | what it means | what to do |\n|---|---|---|---|\n".to_owned();
        for Code { name, severity, meaning, cure } in ALL {
            writeln!(table, "| `{name}` | {severity} | {meaning} | {cure}. |").unwrap();
        }
        let expected = format!("{before}{BEGIN}{table}{END}{after}");
        if std::env::var_os("RECORD").is_some() {
            std::fs::write(path, &expected).unwrap();
        }
        assert_eq!(page, expected, "RECORD=1 cargo test -p plainsong-cli codes writes it anew");
    }
}
