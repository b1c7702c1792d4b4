//! What a trace says of messages: short enough to be read.

use plainsong_proto::atomic::message::{Join, Row, Transfer};
use plainsong_proto::atomic::view::{Decision, Report, View};
use plainsong_proto::atomic::{Destination, EntryHeader, MemberId, Message};

use super::entry::Entry;

/// Node and the end of the nonce.
pub(super) fn id_of(id: MemberId) -> String {
    format!("n{}/{:05x}", id.prefix.0[0].wrapping_sub(1), id.nonce & 0xf_ffff)
}

pub(super) fn sample(entry: &Entry) -> String {
    format!("w{}#{} key {} depth {}", entry.writer, entry.number, entry.key, entry.depth)
}

pub(super) fn on_lane(header: EntryHeader, entry: &Entry) -> String {
    format!("e{}:{} stamp {} {}", header.epoch, header.index, header.stamp, sample(entry))
}

pub(super) fn whom(destination: Destination) -> String {
    match destination {
        Destination::Group => "to all".to_owned(),
        Destination::Member(id) => format!("to {}", id_of(id)),
        Destination::Voter(id) => format!("to voter {id}"),
    }
}

fn view_of(view: &View) -> String {
    let members: Vec<String> =
        view.members.iter().map(|it| id_of(it.id) + if it.caught_up { "" } else { "-" }).collect();
    let View { instance, epoch, base_position, base_clock, .. } = view;
    let voters: Vec<String> = view.voters.iter().map(|it| format!("{:x}", it.0[0])).collect();
    format!(
        "i{instance:x} e{epoch} [{}] voters {} at {base_position} clock {base_clock}",
        members.join(" "),
        voters.join(" ")
    )
}

pub(super) fn decided(decision: &Decision) -> String {
    let Decision { base, cut, incumbents, next } = decision;
    format!("end of e{base}: cut {cut:?} by {:b}, then {}", incumbents.0, view_of(next))
}

fn report_of(report: &Report) -> String {
    let Report { id, successor, epoch, holds, clock, caught_up, hears, accuses, leaves, .. } = report;
    format!(
        "Report {}{} e{epoch} holds {holds:?} clock {clock} hears {:b} accuses {:b}{}{}",
        id_of(*id),
        successor.map_or_else(String::new, |it| format!(" by {}", id_of(it))),
        hears.0,
        accuses.0,
        if *caught_up { "" } else { " not caught up" },
        if *leaves { " leaves" } else { "" },
    )
}

fn row_of(row: &Row) -> String {
    let Row { from, epoch, clock, sent, acked, position, hears, caught_up, .. } = row;
    format!(
        "Row {} e{epoch} clock {clock} sent {sent} acked {acked:?} at {position} hears {:b}{}",
        id_of(*from),
        hears.0,
        if *caught_up { "" } else { " not caught up" },
    )
}

fn transfer_of(part: &Transfer<Entry>) -> String {
    let Transfer { from, after, state, entries, through, position, .. } = part;
    let state = state.as_ref().map(|it| (it.through, it.offset, it.octets.len(), it.total));
    let entries: Vec<u64> = entries.iter().map(|it| it.position).collect();
    format!(
        "Transfer {} after {after} state {state:?} {entries:?} through {through} at {position}",
        id_of(*from)
    )
}

pub(super) fn brief(message: &Message<Entry>) -> String {
    match message {
        Message::Row(row) => row_of(row),
        Message::Wedge { epoch, .. } => format!("Wedge e{epoch}"),
        Message::Report { report, .. } => report_of(report),
        Message::NewView(decision) => format!("NewView {}", decided(decision)),
        Message::AskView { from, epoch } => format!("AskView {} e{epoch}", id_of(*from)),
        Message::Current(view) => format!("Current {}", view_of(view)),
        Message::Join(Join { from, ready, hears, .. }) => {
            let hears: Vec<String> = hears.iter().map(|it| id_of(*it)).collect();
            format!("Join {} ready {ready} hears {}", id_of(*from), hears.join(" "))
        }
        Message::Fetch(fetch) => {
            format!("Fetch {} after {} from {}", id_of(fetch.from), fetch.after, fetch.offset)
        }
        Message::Transfer(part) => transfer_of(part),
        Message::Decider { instance, since, octets, .. } => {
            format!("Decider i{instance:x} since e{since}: {} octets", octets.len())
        }
    }
}
