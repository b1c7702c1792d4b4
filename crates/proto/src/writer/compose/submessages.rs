//! The heartbeats and the inline QoS of a writer, from what it holds.

use crate::seq::{FragmentNumber, SequenceNumber};
use crate::wire::Heartbeat;
use crate::wire::param::{InlineQos, StatusInfo, encode_inline_qos};

use crate::writer::WriterConfig;
use crate::writer::flow::heartbeat::HeartbeatTimer;
use crate::writer::flow::route_kind::RouteKind;
use crate::writer::record::change::{Change, ChangeKind};
use crate::writer::record::history::History;
use crate::writer::routes::proxies::Proxies;
use crate::writer::routes::proxy::ReaderProxy;
use crate::writer::routes::route::Routes;
use crate::writer::routes::target::Target;

/// The last change that was sent to all readers of a route: heartbeats announce no more than that,
/// lest readers ask for what is on its way.
pub(crate) fn sent_last(history: &History, routes: &Routes, kind: RouteKind) -> SequenceNumber {
    routes.of(kind).queue.unsent().map_or_else(|| history.last(), |(number, _)| number.previous())
}

/// How many fragments of a change were sent to all readers of a route.
pub(crate) fn sent_fragments(
    routes: &Routes,
    target: &Target<'_>,
    number: SequenceNumber,
    (payload_bytes, inline_qos_bytes): (usize, usize),
) -> FragmentNumber {
    match routes.of(target.kind).queue.unsent() {
        Some((unsent, _)) if number > unsent => 0,
        Some((unsent, fragments)) if number == unsent => fragments,
        _ => target.fragments(payload_bytes, inline_qos_bytes),
    }
}

/// A HEARTBEAT for all readers of a route.
pub(crate) fn heartbeat(
    timer: &mut HeartbeatTimer,
    history: &History,
    routes: &Routes,
    target: &Target<'_>,
    final_flag: bool,
) -> Heartbeat {
    let last = sent_last(history, routes, target.kind);
    let first = history.first().min(last.next());
    Heartbeat {
        reader: target.reader,
        writer: target.source.entity,
        first,
        last,
        count: timer.next_count(),
        final_flag,
        liveliness: false,
        group: timer.group_info(history, first, last),
    }
}

/// A HEARTBEAT for one reader: what is not for it is not announced.
pub(crate) fn heartbeat_to(
    timer: &mut HeartbeatTimer,
    history: &History,
    routes: &Routes,
    proxy: &ReaderProxy,
    target: &Target<'_>,
    final_flag: bool,
) -> Heartbeat {
    let mut heartbeat = heartbeat(timer, history, routes, target, final_flag);
    heartbeat.last = heartbeat.last.max(proxy.first_relevant.previous());
    heartbeat.first = heartbeat.first.max(proxy.first_relevant).min(heartbeat.last.next());
    if proxy.filter.is_some() || proxy.confirmed < proxy.acknowledged {
        // Of what its filter refused, or was before its time, it may not know yet, even when it was told:
        // were it said to be gone, it would count as lost.
        heartbeat.first = heartbeat.first.min(proxy.confirmed.next());
    }
    heartbeat.group = timer.group_info(history, heartbeat.first, heartbeat.last);
    heartbeat
}

/// Encodes the inline QoS of a change: status and key hash for keyed topics (RTPS 2.5 §9.6.4.8 and
/// §9.6.4.9), the rest when a reader expects it. Its length in octets.
#[inline]
pub(crate) fn encode(
    config: &WriterConfig,
    proxies: &Proxies,
    change: &Change<'_>,
    bytes: &mut Vec<u8>,
) -> usize {
    bytes.clear();
    let is_plain = change.kind == ChangeKind::Alive && change.marks.is_none();
    if is_plain && config.group.is_none() && !proxies.inline_qos() {
        return 0;
    }
    encode_all(config, proxies, change, bytes);
    bytes.len()
}

/// The inline QoS of a change that has any.
fn encode_all(config: &WriterConfig, proxies: &Proxies, change: &Change<'_>, bytes: &mut Vec<u8>) {
    let marks = change.marks.copied().unwrap_or_default();
    let tells_key = !marks.is_end && (change.kind.is_key_only() || proxies.inline_qos());
    let mut qos = InlineQos {
        coherent_set: marks.set.filter(|_| !marks.is_end),
        group_coherent_set: marks.group_set,
        group_sequence_number: marks.group_number,
        group_writers: config.group.as_ref().map(|group| group.writers()),
        status_info: StatusInfo {
            disposed: change.kind.disposes(),
            unregistered: change.kind.unregisters(),
            filtered: false,
        },
        // Data has its key in it.
        key_hash: (config.keyed && tells_key).then(|| change.hash.key_hash()),
        ..InlineQos::default()
    };
    if proxies.inline_qos() && !marks.is_end {
        qos.lifespan = Some(config.qos.lifespan);
        qos.ownership_strength = Some(config.qos.ownership_strength);
    }
    encode_inline_qos(&qos, bytes);
}
