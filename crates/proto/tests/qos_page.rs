//! `docs/qos.md` is printed from the table of policies and from what is listed here: which file carries a
//! policy out, and which test proves it. `cargo xtask docs` writes the page; the test refuses one that is out
//! of date, and names of files and tests that do not exist.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use plainsong_proto::qos::{Consistency, EntityKind, POLICIES, Policy, QosSet};

/// Set by `cargo xtask docs`: the page is written instead of compared.
const WRITE_VARIABLE: &str = "PLAINSONG_WRITE_PAGES";

/// What the table does not say about a policy.
struct Row {
    policy: &'static str,
    /// The value, for the column of defaults.
    value: fn(&QosSet) -> String,
    /// When an offer satisfies a request; empty where that is not asked.
    rule: &'static str,
    /// Files that carry it out; none where nothing does.
    files: &'static [&'static str],
    /// File and name of each test.
    tests: &'static [(&'static str, &'static str)],
    /// What it does here, and what it does not.
    effect: &'static str,
}

const ANNOUNCED: &str = "crates/proto/src/discovery/tests/announced.rs";
const BUILTIN: &str = "crates/plainsong/tests/builtin_topics.rs";
const CONSISTENCY: &str = "crates/proto/src/qos/tests/consistency.rs";
const COHERENT: &str = "crates/proto/src/reader/tests/coherent.rs";
const DCPS: &str = "crates/plainsong/tests/dcps.rs";
const AGREED: &str = "crates/plainsong/tests/atomic.rs";
const MATCHING: &str = "crates/plainsong/tests/atomic_matching.rs";
const FLOW: &str = "crates/plainsong/tests/atomic_flow.rs";
const ENTITIES: &str = "crates/plainsong/tests/entities.rs";
const HISTORIES: &str = "crates/proto/src/writer/tests/histories.rs";
const LIMITS_OF_READERS: &str = "crates/proto/src/reader/tests/limits.rs";
const POLICIES_OF_READERS: &str = "crates/proto/src/reader/tests/policies.rs";
const QOS: &str = "crates/proto/src/qos/tests.rs";
const READERS: &str = "crates/proto/src/discovery/tests/consistency.rs";
const SCENARIO: &str = "crates/proto/src/discovery/tests/scenario.rs";
const EXPLAIN: &str = "crates/proto/src/discovery/tests/explain.rs";
const TYPES: &str = "crates/proto/src/discovery/tests/types.rs";

const SEDP: &str = "crates/proto/src/discovery/sedp.rs";

const ROWS: &[Row] = &[
    Row {
        policy: "USER_DATA",
        value: |qos| octets(&qos.user_data),
        rule: "",
        files: &[SEDP, "crates/proto/src/discovery/spdp.rs"],
        tests: &[
            (ANNOUNCED, "data_of_users_topics_and_groups_reach_others_and_so_do_their_changes"),
            (BUILTIN, "dcps_participant_tells_who_comes_changes_and_leaves"),
        ],
        effect: "Announced, at most 32 KiB. A participant whose announcement would not fit into a datagram is \
                 announced without.",
    },
    Row {
        policy: "DURABILITY",
        value: |qos| qos.durability.to_string(),
        rule: "offered kind ≥ requested: VOLATILE < TRANSIENT_LOCAL < TRANSIENT < PERSISTENT",
        files: &["crates/proto/src/writer/record/durability.rs"],
        tests: &[
            (
                "crates/proto/src/writer/tests/matching.rs",
                "fact_63_a_late_durable_reader_is_sent_the_history_in_order_and_once",
            ),
            (DCPS, "a_late_joiner_gets_the_history_of_a_transient_local_writer"),
            (ENTITIES, "what_is_not_honoured_is_told"),
        ],
        effect: "TRANSIENT and PERSISTENT are accepted and end with the writer: there is no durability service and \
                 nothing is stored on disk. `unhonoured()` of an entity says so. A reader that is matched anew, as after its lease ended, \
                 gets the history again, also of what it took before.",
    },
    Row {
        policy: "PRESENTATION",
        value: |qos| {
            let policy = qos.presentation;
            let (coherent, ordered) = (policy.coherent_access, policy.ordered_access);
            format!("{}, coherent {coherent}, ordered {ordered}", policy.access_scope)
        },
        rule: "offered scope ≥ requested: INSTANCE < TOPIC < GROUP; what is requested of coherent and ordered access \
               is offered",
        files: &[
            "crates/proto/src/writer/record/coherent.rs",
            "crates/proto/src/reader/coherent.rs",
            "crates/plainsong/src/subscriber.rs",
        ],
        tests: &[
            (COHERENT, "fact_38_a_set_is_shown_when_it_has_ended_and_not_before"),
            (COHERENT, "fact_38_a_group_set_is_shown_when_all_its_writers_have_ended_it"),
            (COHERENT, "fact_39_topic_order_is_as_written_and_instance_order_is_by_instance"),
            ("crates/plainsong/tests/presentation.rs", "group_order_tells_which_reader_to_take_from"),
            ("crates/proto/src/reader/tests/group.rs", "a_sample_waits_for_the_lost_one_of_another_writer"),
        ],
        effect: "Sets and order of all scopes; GROUP order waits for samples of other writers on their way.",
    },
    Row {
        policy: "DEADLINE",
        value: |qos| qos.deadline.to_string(),
        rule: "offered period ≤ requested",
        files: &["crates/proto/src/writer/record/instances.rs", "crates/proto/src/reader/cache.rs"],
        tests: &[
            (
                "crates/proto/src/writer/tests/instances.rs",
                "fact_33_each_instance_has_a_deadline_that_re_arms",
            ),
            (POLICIES_OF_READERS, "fact_33_a_missed_deadline_is_told_per_instance_and_again_each_period"),
            ("crates/proto/src/reader/tests/filter.rs", "what_the_filter_leaves_out_meets_no_deadline"),
        ],
        effect: "Watched for each instance on both sides. With a content filter only samples that pass meet the \
                 reader's deadline, from the first of an instance on, wherever the others were left out; the \
                 writer's is met by every sample that it writes.",
    },
    Row {
        policy: "LATENCY_BUDGET",
        value: |qos| qos.latency_budget.to_string(),
        rule: "offered duration ≤ requested",
        files: &["crates/proto/src/writer/compose/batch.rs"],
        tests: &[(
            "crates/proto/src/writer/tests/batch.rs",
            "latency_budget_holds_a_sample_for_so_long_and_no_longer",
        )],
        effect: "A writer may keep small samples so long, to send several in one datagram.",
    },
    Row {
        policy: "OWNERSHIP",
        value: |qos| qos.ownership.to_string(),
        rule: "offered kind = requested",
        files: &["crates/proto/src/reader/ownership.rs"],
        tests: &[(
            POLICIES_OF_READERS,
            "fact_31_the_strongest_writer_owns_the_instance_and_ties_go_to_the_lower_guid",
        )],
        effect: "EXCLUSIVE: each reader shows an instance's samples from its owner only.",
    },
    Row {
        policy: "OWNERSHIP_STRENGTH",
        value: |qos| qos.ownership_strength.to_string(),
        rule: "",
        files: &["crates/proto/src/reader/ownership.rs"],
        tests: &[(
            POLICIES_OF_READERS,
            "fact_31_ownership_passes_on_when_the_owner_unregisters_leaves_or_misses_its_deadline",
        )],
        effect: "Changes take effect with the writer's announcement.",
    },
    Row {
        policy: "LIVELINESS",
        value: |qos| format!("{}, lease {}", qos.liveliness.kind, qos.liveliness.lease_duration),
        rule: "offered kind ≥ requested: AUTOMATIC < MANUAL_BY_PARTICIPANT < MANUAL_BY_TOPIC; offered lease ≤ \
               requested",
        files: &[
            "crates/proto/src/discovery/liveliness.rs",
            "crates/proto/src/writer/liveliness.rs",
            "crates/proto/src/reader/liveliness.rs",
        ],
        tests: &[
            (
                "crates/proto/src/reader/tests/liveliness.rs",
                "a_writer_whose_lease_ends_is_not_alive_until_it_is_heard_again",
            ),
            (
                "crates/proto/src/writer/tests/instances.rs",
                "fact_27_a_manual_writer_that_asserts_nothing_loses_its_liveliness_once",
            ),
            (SCENARIO, "fact_27_automatic_and_manual_liveliness_travel_as_participant_messages"),
        ],
        effect: "All kinds, told to both sides.",
    },
    Row {
        policy: "TIME_BASED_FILTER",
        value: |qos| qos.time_based_filter.to_string(),
        rule: "",
        files: &["crates/proto/src/reader/cache.rs", "crates/proto/src/writer/compose/plan.rs"],
        tests: &[
            (
                POLICIES_OF_READERS,
                "fact_32_filtered_samples_are_acknowledged_and_the_last_is_shown_when_the_writer_stops",
            ),
            (
                "crates/proto/src/writer/tests/separation.rs",
                "readers_that_filter_by_time_are_sent_the_first_and_then_the_last_of_each_separation",
            ),
        ],
        effect: "The reader thins out what arrives. Where all readers that a writer reaches alike have a filter, and the topic has no key, it sends no more than they want.",
    },
    Row {
        policy: "PARTITION",
        value: |qos| {
            if qos.partition.is_empty() { "the partition \"\"".into() } else { qos.partition.join(", ") }
        },
        rule: "",
        files: &["crates/proto/src/qos/rxo.rs", "crates/proto/src/discovery/matching.rs"],
        tests: &[
            (QOS, "fact_29_partitions_meet_by_name_or_pattern"),
            (DCPS, "partitions_can_change_while_running"),
        ],
        effect: "Names and `fnmatch` patterns; a pattern never matches a pattern.",
    },
    Row {
        policy: "RELIABILITY",
        value: |qos| format!("{}, blocking {}", qos.reliability.kind, qos.reliability.max_blocking_time),
        rule: "offered kind ≥ requested: BEST_EFFORT < RELIABLE",
        files: &[
            "crates/proto/src/writer/answer.rs",
            "crates/proto/src/reader/answer.rs",
            "crates/proto/src/writer/strangers.rs",
            "crates/plainsong/src/data_writer.rs",
        ],
        tests: &[
            (
                "crates/proto/src/writer/tests/reliability.rs",
                "a_missing_sample_is_repeated_to_the_reader_that_misses_it",
            ),
            (DCPS, "a_full_history_blocks_and_then_times_out"),
            (
                "crates/plainsong/tests/silence.rs",
                "a_stopped_reader_holds_a_writer_back_while_its_lease_lasts_and_is_named",
            ),
        ],
        effect: "Repeats until acknowledged; `max_blocking_time` bounds `write`. When a sample has found no room for so long, readers of other \
                 processes that have never answered anything, a second after their match, are not waited for until they do; what left meanwhile is told to be gone. One that \
                 has answered is waited for until the lease of its participant ends. `DataWriter::readers_behind` tells who holds a writer back.",
    },
    Row {
        policy: "DESTINATION_ORDER",
        value: |qos| qos.destination_order.to_string(),
        rule: "offered kind ≥ requested: BY_RECEPTION_TIMESTAMP < BY_SOURCE_TIMESTAMP",
        files: &[
            "crates/proto/src/reader/destination_order.rs",
            "crates/proto/src/writer/record/destination_order.rs",
        ],
        tests: &[
            (
                "crates/proto/src/reader/tests/destination_order.rs",
                "an_older_sample_never_replaces_a_newer_and_never_follows_a_taken_one",
            ),
            (
                "crates/proto/src/writer/tests/destination_order.rs",
                "by_source_timestamps_of_an_instance_never_go_back",
            ),
        ],
        effect: "BY_SOURCE_TIMESTAMP: all readers end with the same value.",
    },
    Row {
        policy: "HISTORY",
        value: |qos| format!("{} {}", qos.history.kind, qos.history.depth),
        rule: "",
        files: &["crates/proto/src/writer/record/history.rs", "crates/proto/src/reader/cache.rs"],
        tests: &[
            (HISTORIES, "a_history_is_what_its_model_is"),
            (POLICIES_OF_READERS, "keep_last_keeps_the_last_of_each_instance"),
        ],
        effect: "KEEP_ALL of a reliable writer also ends at 2 MiB not acknowledged, within a host half of that, and a quarter for one reader as long as samples are shorter than 20 KiB. A sample counts for 192 octets more than it has.",
    },
    Row {
        policy: "RESOURCE_LIMITS",
        value: |qos| {
            let limits = qos.resource_limits;
            let all = [limits.max_samples, limits.max_instances, limits.max_samples_per_instance];
            if all == [-1; 3] { "unlimited".into() } else { format!("{all:?}") }
        },
        rule: "",
        files: &["crates/proto/src/writer/mod.rs", "crates/proto/src/reader/cache.rs"],
        tests: &[
            (HISTORIES, "keep_all_stops_at_max_samples_until_acknowledged"),
            (POLICIES_OF_READERS, "each_limit_rejects_by_its_name"),
            (LIMITS_OF_READERS, "a_surplus_instance_is_rejected_and_the_others_go_on"),
            (LIMITS_OF_READERS, "reading_is_enough_to_make_room_under_keep_last"),
        ],
        effect: "Unlimited stays bounded by octets: what a peer can make a reader keep has a limit. At max_samples a KEEP_ALL writer waits for \
                 acknowledgements; of what everybody has, the oldest leaves, so that late joiners of a TRANSIENT_LOCAL one get the last max_samples. A \
                 TRANSIENT_LOCAL KEEP_LAST one refuses further instances instead. Without limits, it keeps all it ever wrote. A reader rejects \
                 instances beyond max_instances, beyond 131,072 where that is unlimited and beyond 1,048,576 in any case, and goes on with the others. At the other limits a reliable writer waits, with KEEP_ALL until \
                 something is taken, with KEEP_LAST until something is read: then what was read makes room. max_samples must not be smaller than the depth.",
    },
    Row {
        policy: "ENTITY_FACTORY",
        value: |qos| format!("autoenable {}", qos.entity_factory.autoenable_created_entities),
        rule: "",
        files: &["crates/plainsong/src/participant.rs", "crates/plainsong/src/group.rs"],
        tests: &[
            (DCPS, "entities_of_a_factory_that_does_not_enable_stay_silent_until_enabled"),
            (ENTITIES, "what_is_created_disabled_waits_to_be_enabled_from_the_top"),
        ],
        effect: "Of factories, participants, publishers and subscribers.",
    },
    Row {
        policy: "WRITER_DATA_LIFECYCLE",
        value: |qos| format!("autodispose {}", qos.writer_data_lifecycle.autodispose_unregistered_instances),
        rule: "",
        files: &["crates/proto/src/writer/mod.rs"],
        tests: &[(
            "crates/proto/src/writer/tests/instances.rs",
            "fact_41_unregistering_disposes_unless_told_otherwise",
        )],
        effect: "Unregistering also disposes, unless told otherwise; so does deleting a writer. One whose last handle is dropped leaves its \
                 instances without writers instead, and waits for nobody.",
    },
    Row {
        policy: "READER_DATA_LIFECYCLE",
        value: |qos| {
            let delays = qos.reader_data_lifecycle;
            let (nowriter, disposed) =
                (delays.autopurge_nowriter_samples_delay, delays.autopurge_disposed_samples_delay);
            format!("no writer {nowriter}, disposed {disposed}")
        },
        rule: "",
        files: &["crates/proto/src/reader/lifecycle.rs"],
        tests: &[("crates/proto/src/reader/tests/lifecycle.rs", "autopurge_forgets_after_its_delay")],
        effect: "Both delays.",
    },
    Row {
        policy: "TOPIC_DATA",
        value: |qos| octets(&qos.topic_data),
        rule: "",
        files: &[SEDP, "crates/plainsong/src/group.rs"],
        tests: &[(ENTITIES, "topic_and_group_data_reach_the_other_side")],
        effect: "Announced with each endpoint of the topic, at most 32 KiB.",
    },
    Row {
        policy: "GROUP_DATA",
        value: |qos| octets(&qos.group_data),
        rule: "",
        files: &[SEDP, "crates/plainsong/src/group.rs"],
        tests: &[(ENTITIES, "topic_and_group_data_reach_the_other_side")],
        effect: "Announced with each endpoint of the publisher or subscriber, at most 32 KiB.",
    },
    Row {
        policy: "TRANSPORT_PRIORITY",
        value: |qos| qos.transport_priority.to_string(),
        rule: "",
        files: &["crates/proto/src/writer/mod.rs", "crates/plainsong/src/transport/udp/linux.rs"],
        tests: &[
            (
                "crates/plainsong/tests/transport_priority.rs",
                "the_priority_is_the_dscp_of_the_datagrams_and_can_be_changed",
            ),
            (
                "crates/proto/src/writer/tests/reliability.rs",
                "transport_priority_is_a_code_point_within_its_bounds",
            ),
        ],
        effect: "0 to 63, the DSCP of the writer's datagrams.",
    },
    Row {
        policy: "LIFESPAN",
        value: |qos| qos.lifespan.to_string(),
        rule: "",
        files: &["crates/proto/src/writer/record/history.rs", "crates/proto/src/reader/cache.rs"],
        tests: &[
            (HISTORIES, "fact_34_a_sample_expires_by_its_source_timestamp"),
            (POLICIES_OF_READERS, "fact_34_lifespan_runs_from_the_source_timestamp"),
        ],
        effect: "Counted from the source timestamp, in writer and reader.",
    },
    Row {
        policy: "DURABILITY_SERVICE",
        value: |qos| {
            let service = qos.durability_service;
            let (delay, history) = (service.service_cleanup_delay, service.history);
            format!("cleanup {delay}, {} {}, unlimited", history.kind, history.depth)
        },
        rule: "",
        files: &["crates/proto/src/writer/record/durability.rs"],
        tests: &[(
            "crates/proto/src/writer/tests/durability.rs",
            "a_service_with_a_shorter_history_keeps_less_than_the_writer",
        )],
        effect: "What a TRANSIENT or PERSISTENT writer keeps once all have it, as long as it lives.",
    },
    Row {
        policy: "DATA_REPRESENTATION",
        value: |qos| if qos.data_representation.is_empty() { "XCDR1".into() } else { "other".into() },
        rule: "the first offered is among the requested",
        files: &["crates/proto/src/qos/rxo.rs", "crates/plainsong/src/data_writer.rs"],
        tests: &[(QOS, "fact_53_a_writer_offers_its_first_representation_and_none_means_xcdr1")],
        effect: "XCDR1 and XCDR2; not XML.",
    },
    Row {
        policy: "TYPE_CONSISTENCY_ENFORCEMENT",
        value: |qos| {
            let policy = qos.type_consistency;
            let coercion =
                if policy.allow_type_coercion { "ALLOW_TYPE_COERCION" } else { "DISALLOW_TYPE_COERCION" };
            let flags = [
                (policy.ignore_sequence_bounds, "ignore_sequence_bounds"),
                (policy.ignore_string_bounds, "ignore_string_bounds"),
                (policy.ignore_member_names, "ignore_member_names"),
                (policy.prevent_type_widening, "prevent_type_widening"),
                (policy.force_type_validation, "force_type_validation"),
            ];
            let set: Vec<_> = flags.into_iter().filter_map(|(set, name)| set.then_some(name)).collect();
            format!("{coercion}, {}", set.join(", "))
        },
        rule: "",
        files: &["crates/proto/src/types/compare.rs", "crates/proto/src/discovery/type_lookup.rs"],
        tests: &[
            (TYPES, "a_reader_with_more_members_at_the_end_matches_unless_it_forbids_widening"),
            (TYPES, "a_reader_that_forces_type_validation_matches_who_tells_an_equal_type"),
            (EXPLAIN, "a_reader_that_forces_type_validation_matches_nobody_who_tells_no_type"),
            (QOS, "flags_about_members_of_types_are_told_to_be_unhonoured"),
        ],
        effect: "Types of one name are compared by the rules of XTypes 1.3 §7.2.4 where both participants know both: \
                 types are told in announcements, and who needs more asks. Versions of other products that break \
                 by them are told none and go by the name: \
                 they are refused only what could not be read, and reliable writers of theirs not even that; \
                 `unhonoured()` says so of flags. In XCDR1 final and appendable types of the same members match. `prevent_type_widening` refuses readers with more \
                 members than the writer. INCONSISTENT_TOPIC tells of other names, and of other types of one name.",
    },
    Row {
        policy: "PROPERTY",
        value: |qos| if qos.properties.is_empty() { "none".into() } else { "some".into() },
        rule: "",
        files: &[SEDP, "crates/proto/src/discovery/spdp.rs"],
        tests: &[(ANNOUNCED, "a_property_travels_only_when_it_is_to_and_a_secret_is_in_no_datagram")],
        effect: "Announced where `propagate` is set; at most 64, 32 KiB together. No property changes what \
                 Plainsong does. `plainsong.voter` is its own: it tells people as which voter of ATOMIC topics a participant votes.",
    },
    Row {
        policy: "CONSISTENCY",
        value: |qos| {
            let Consistency { kind, slow_member_delay, deliver_at } = qos.consistency;
            format!("{kind}, slow members {slow_member_delay}, delivered when {deliver_at}")
        },
        rule: "offered kind ≥ requested: EVENTUAL < ATOMIC; the rest is not compared",
        files: &[
            "crates/proto/src/qos/check.rs",
            "crates/plainsong/src/consistent.rs",
            "crates/proto/src/discovery/forms.rs",
        ],
        tests: &[
            (CONSISTENCY, "only_an_atomic_writer_satisfies_an_atomic_reader"),
            (CONSISTENCY, "what_would_part_the_readers_of_an_atomic_topic_is_refused_by_name"),
            (CONSISTENCY, "an_atomic_entity_is_in_one_partition_without_sets_and_stays_there"),
            (CONSISTENCY, "how_long_a_slow_member_is_waited_for_is_told_and_not_compared"),
            (CONSISTENCY, "when_samples_are_delivered_is_told_and_not_compared"),
            (READERS, "a_reader_with_atomic_is_told_to_plainsong_alone_whoever_comes_first"),
            (READERS, "atomic_readers_match_atomic_writers_and_only_our_side_hears_what_others_lack"),
            (CONSISTENCY, "atomic_is_one_parameter_that_others_may_ignore_and_eventual_is_none"),
            (AGREED, "one_writer_and_readers_in_two_participants_have_one_order"),
            (FLOW, "who_does_not_take_for_longer_than_slow_member_delay_is_excluded_and_comes_back"),
            (MATCHING, "a_durable_reader_gets_nothing_of_volatile_writers_here_and_elsewhere"),
            (ENTITIES, "what_contradicts_atomic_is_refused_by_name"),
        ],
        effect: "The participants with ATOMIC endpoints of a topic are a group: its readers have the same samples in the same \
                 order, or none has them; but a reader gets nothing of writers that do not match it. EVENTUAL readers get what an \
                 ATOMIC writer writes after that.",
    },
];

fn octets(octets: &[u8]) -> String {
    if octets.is_empty() { "empty".into() } else { format!("{} octets", octets.len()) }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

const INTRODUCTION: &str = "\
# QoS policies

This page is written by `cargo xtask docs` from the table of policies
(`crates/proto/src/qos/table.rs`) and the list in `crates/proto/tests/qos_page.rs`; a test fails when it is out of
date or names a file or test that does not exist. All policies of DCPS 1.4 are here, and those of other standards
that Plainsong knows, and its own. Letters say which entities have a policy: **P**articipant, **T**opic,
pu**B**lisher, **S**ubscriber, **W**riter, **R**eader.

A policy with a rule in *offered and requested* keeps a writer and a reader apart that do not satisfy it. Each such
pair is explained, with both values and a cure: `DomainParticipant::on_mismatch` and `mismatches`. That what is not
changeable is refused by name, and what is changeable reaches others, is proved by
`changeable_policies_change_at_run_time_and_others_are_refused_by_name` (plainsong/tests/entities.rs).

";

/// What goes with CONSISTENCY ATOMIC.
const ATOMIC: &str = "\
## CONSISTENCY and the other policies

CONSISTENCY is a policy of Plainsong, with policy id 1025. EVENTUAL is what DCPS says: each reader gets the samples of
each writer, and two readers may see two writers in different orders. ATOMIC says that all readers of the topic get the
same samples in the same order, or none of them does, whatever fails.

What is offered and requested keeps a writer and a reader apart here, too: the reader gets nothing of that writer, both have
INCOMPATIBLE_QOS, and the rest stands where it stands for all others. Of a writer that is gone, or that discovery has not told of
yet, it is known whether it keeps samples for late joiners, and no more.

A writer with ATOMIC waits for the slowest member of its group. `slow_member_delay` says how long that may hold it up
before it is excluded: EVICTED tells it so, and it joins again once its readers take. What it missed meanwhile it gets
where writers are TRANSIENT_LOCAL, or else its readers count it in SAMPLE_LOST. Infinite, the default, says never.

A member whose endpoint is PERSISTENT keeps what was agreed in its state directory. `deliver_at` says when it vouches for
a sample: DURABLE, the default, when it is on its disk, so that what is delivered outlives a loss of power of all members;
STABLE when it has received it, so that a loss of power of all members may take the last samples that were delivered.

ATOMIC travels as parameter 0x8f05 of an announcement: a long, 1, then `slow_member_delay` as a duration unless it is
infinite, and 0 as a long where it is STABLE. EVENTUAL is not sent. Other products ignore the parameter, so that an
ATOMIC writer is an ordinary reliable writer to them. Plainsong reads it in announcements of Plainsong only, because vendors use such numbers as
they like. A reader with ATOMIC is announced to Plainsong only: other products would match it, and their reliable
writers would wait for it. It hears of their writers, and is told REQUESTED_INCOMPATIBLE_QOS; they are told nothing.

| policy | with ATOMIC |
|---|---|
| RELIABILITY | RELIABLE. It is the default of a topic or reader with ATOMIC that says nothing; BEST_EFFORT is refused |
| DURABILITY | VOLATILE; TRANSIENT_LOCAL and TRANSIENT, whose history all members keep, so that it outlives its writer; PERSISTENT, which outlives all processes |
| LIFESPAN | Infinite: samples that expire by the clocks of readers are not the same everywhere. A finite one is refused |
| DESTINATION_ORDER | BY_RECEPTION_TIMESTAMP, the order in which all readers get the samples. BY_SOURCE_TIMESTAMP is refused, since timestamps do not change that order |
| OWNERSHIP | SHARED. EXCLUSIVE is refused: each reader finds out by itself, at another time, that an owner is gone |
| PARTITION | One name. Several names and patterns are refused: the writers and readers of a topic in one partition agree with each other, and nobody is in two of them. A publisher or subscriber that has ATOMIC members stays in its partition |
| PRESENTATION | INSTANCE and TOPIC, ordered or not: the order of all readers is an order of the topic. coherent_access is refused, because samples of other writers may stand between those of a set; so is GROUP, because each topic has an order of its own |
| HISTORY, RESOURCE_LIMITS | As each entity likes. They limit what a reader keeps for the application, after the order; what is written and not yet everywhere is kept whatever HISTORY says. For those who join later, and on disks, the last 65,536 entries of a topic are kept at most (`history_entries_max`), with KEEP_ALL, too |
| TIME_BASED_FILTER, content filters, DEADLINE, READER_DATA_LIFECYCLE | As each reader likes: they act on what it got. A filtered reader sees a part of the same sequence |
| LATENCY_BUDGET, TRANSPORT_PRIORITY, `suspend_publications` | As each writer likes: they change when samples are sent, not their order |
| LIVELINESS | As always. That a writer is lost is told to each reader when its participant notices, not in the order of samples |
| the rest | As always |
";

/// The page as it should be.
fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("| policy | defined in | of | default | changeable | offered and requested |\n");
    page.push_str("|---|---|---|---|---|---|\n");
    for (policy, row) in rows() {
        let rule = if row.rule.is_empty() { "–" } else { row.rule };
        let changeable = if policy.changeable { "yes" } else { "no" };
        let (of, default) = (entities(policy), default(policy, row));
        writeln!(page, "| {} | {} | {of} | {default} | {changeable} | {rule} |", policy.name, policy.section)
            .expect("text grows");
    }
    page.push_str("\n## What each does, where, and what proves it\n\n");
    page.push_str("| policy | what it does here | carried out in | proved by |\n|---|---|---|---|\n");
    for (policy, row) in rows() {
        let files = match row.files {
            [] => "nothing carries it out".to_owned(),
            files => files.iter().map(|file| format!("`{file}`")).collect::<Vec<_>>().join("<br>"),
        };
        let tests: Vec<_> =
            row.tests.iter().map(|(file, test)| format!("`{test}` ({})", short(file))).collect();
        writeln!(page, "| {} | {} | {files} | {} |", policy.name, row.effect, tests.join("<br>"))
            .expect("text grows");
    }
    page.push('\n');
    page.push_str(ATOMIC);
    page
}

/// All policies, each with its row.
fn rows() -> impl Iterator<Item = (&'static Policy, &'static Row)> {
    POLICIES.iter().map(|policy| {
        let row = ROWS.iter().find(|row| row.policy == policy.name);
        (policy, row.unwrap_or_else(|| panic!("{} has no row in tests/qos_page.rs", policy.name)))
    })
}

fn entities(policy: &Policy) -> String {
    let letters = [
        (EntityKind::Participant, 'P'),
        (EntityKind::Topic, 'T'),
        (EntityKind::Publisher, 'B'),
        (EntityKind::Subscriber, 'S'),
        (EntityKind::Writer, 'W'),
        (EntityKind::Reader, 'R'),
    ];
    letters.iter().filter(|(kind, _)| policy.applies_to(*kind)).map(|(_, letter)| *letter).collect()
}

fn default(policy: &Policy, row: &Row) -> String {
    let (writer, other) = ((row.value)(&QosSet::writer()), (row.value)(&QosSet::reader()));
    if writer == other || !policy.applies_to(EntityKind::Writer) {
        return other;
    }
    format!("writer {writer}; else {other}")
}

/// A path without what all paths have in common.
fn short(path: &str) -> &str {
    path.strip_prefix("crates/").unwrap_or(path)
}

#[test]
fn the_page_says_what_the_table_says() {
    let path = root().join("docs/qos.md");
    let page = page();
    if env::var_os(WRITE_VARIABLE).is_some() {
        fs::write(&path, page).expect("docs/qos.md can be written");
        return;
    }
    let there = fs::read_to_string(&path).expect("docs/qos.md can be read");
    assert!(there == page, "docs/qos.md is out of date: run `cargo xtask docs`");
}

#[test]
fn every_policy_has_one_row_and_a_rule_where_the_table_has_one() {
    assert_eq!(ROWS.len(), POLICIES.len());
    for (policy, row) in rows() {
        assert_eq!(policy.is_requested(), !row.rule.is_empty(), "{}", policy.name);
        assert!(!row.tests.is_empty(), "{} is proved by nothing", policy.name);
        assert!(!row.effect.is_empty(), "{}", policy.name);
    }
}

#[test]
fn every_file_and_test_that_is_named_exists() {
    for row in ROWS {
        for file in row.files {
            assert!(root().join(file).is_file(), "{}: there is no {file}", row.policy);
        }
        for (file, test) in row.tests {
            let text =
                fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            let is_there = text.contains(&format!("fn {test}("));
            assert!(is_there, "{}: {file} has no test {test}", row.policy);
        }
    }
}
