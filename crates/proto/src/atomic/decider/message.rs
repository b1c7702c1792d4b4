//! Messages of voters: a header of the connection, and at most one message of the consensus engine.
//!
//! Everything is little-endian; octet sequences are padded to multiples of 4. All numbers are bounded, so
//! that arithmetic on them cannot overflow.

use omnipaxos::ballot_leader_election::Ballot;
use omnipaxos::messages::Message;
use omnipaxos::messages::ballot_leader_election::{
    BLEMessage, HeartbeatMsg, HeartbeatReply, HeartbeatRequest,
};
use omnipaxos::messages::sequence_paxos::{
    AcceptDecide, AcceptSync, Accepted, Decide, NotAccepted, PaxosMessage, PaxosMsg, Prepare, PrepareReq,
    Promise,
};
use omnipaxos::storage::SnapshotType;
use omnipaxos::util::{LogSync, SequenceNumber};

use crate::atomic::decider::VOTERS_MAX;
use crate::atomic::decider::decided::{Decided, ENTRY_BYTES_MIN, Entry, Summary};
use crate::malformed::Malformed;
use crate::tuning::decider::UNDECIDED_MAX;
use crate::wire::octets::{Reader, Sink};

/// All voters of a group have the same: voters never change.
pub(super) const CONFIGURATION: u32 = 1;
/// Indices and counters from others are no larger: it leaves room for arithmetic.
const NUMBER_MAX: u64 = 1 << 48;
/// Ballot numbers and rounds likewise.
const BALLOT_MAX: u32 = 1 << 30;
const VERSION: u8 = 1;

/// How far the log of a voter is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// The base whose decision comes next.
    pub(super) next: u64,
    /// Entries that are decided.
    pub(super) decided: u64,
    /// Entries that are accepted.
    pub(super) accepted: u64,
}

/// What every message begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// How long the receiver should be active, in milliseconds.
    pub(super) active_ms: u16,
    /// Which incarnation of the sender.
    pub(super) from: u32,
    /// Which incarnation of the receiver it is meant for, 0 when the sender knows of none.
    pub(super) to: u32,
    /// Grows by one with each message from this incarnation of the sender to this voter.
    pub(super) number: u64,
    /// Of the sender, when it made the message.
    pub(super) position: Position,
}

/// What a message says beside its header.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// Nothing.
    Hello,
    /// Asks the leader to append an entry.
    Propose(Entry),
    /// Of the election of leaders.
    Heartbeat(HeartbeatMsg),
    /// Of the replication of the log.
    Paxos(PaxosMsg<Entry>),
}

impl Body {
    pub(super) fn into_message(self, from: u64, to: u64) -> Option<Message<Entry>> {
        match self {
            Self::Heartbeat(msg) => Some(Message::BLE(BLEMessage { from, to, msg })),
            Self::Paxos(msg) => Some(Message::SequencePaxos(PaxosMessage { from, to, msg })),
            Self::Hello | Self::Propose(_) => None,
        }
    }
}

const HELLO: u8 = 0;
const PROPOSE: u8 = 1;
const HEARTBEAT_REQUEST: u8 = 2;
const HEARTBEAT_REPLY: u8 = 3;
const PREPARE_REQUEST: u8 = 4;
const PREPARE: u8 = 5;
const PROMISE: u8 = 6;
const ACCEPT_SYNC: u8 = 7;
const ACCEPT_DECIDE: u8 = 8;
const ACCEPTED: u8 = 9;
const NOT_ACCEPTED: u8 = 10;
const DECIDE: u8 = 11;

/// What a log synchronization contains, in one octet.
const NO_SYNC: u8 = 0;
const SYNC: u8 = 1;
const SYNC_WITH_DECISIONS: u8 = 2;

/// A message as octets. Snapshots in it are written as what `decided` tells to somebody who knows what comes
/// before `known`. `None` of what no voter of ours says.
pub(super) fn write(header: &Header, body: &Body, decided: &Decided, known: u64) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(64);
    let mut sink = Sink::new(&mut out, true);
    sink.octets(&[VERSION, kind(body)?]);
    sink.u16(header.active_ms);
    sink.u32(header.from);
    sink.u32(header.to);
    for number in [header.number, header.position.next, header.position.decided, header.position.accepted] {
        sink.octets(&number.to_le_bytes());
    }
    match body {
        Body::Hello => {}
        Body::Propose(entry) => entry.write(&mut sink),
        Body::Heartbeat(HeartbeatMsg::Request(request)) => sink.u32(request.round),
        Body::Heartbeat(HeartbeatMsg::Reply(reply)) => {
            sink.u32(reply.round);
            write_ballot(&mut sink, reply.ballot);
            write_ballot(&mut sink, reply.leader);
            sink.boolean(reply.happy);
        }
        Body::Paxos(message) => write_paxos(&mut sink, message, decided, known)?,
    }
    Some(out)
}

const fn kind(body: &Body) -> Option<u8> {
    Some(match body {
        Body::Hello => HELLO,
        Body::Propose(_) => PROPOSE,
        Body::Heartbeat(HeartbeatMsg::Request(_)) => HEARTBEAT_REQUEST,
        Body::Heartbeat(HeartbeatMsg::Reply(_)) => HEARTBEAT_REPLY,
        Body::Paxos(message) => match message {
            PaxosMsg::PrepareReq(_) => PREPARE_REQUEST,
            PaxosMsg::Prepare(_) => PREPARE,
            PaxosMsg::Promise(_) => PROMISE,
            PaxosMsg::AcceptSync(_) => ACCEPT_SYNC,
            PaxosMsg::AcceptDecide(_) => ACCEPT_DECIDE,
            PaxosMsg::Accepted(_) => ACCEPTED,
            PaxosMsg::NotAccepted(_) => NOT_ACCEPTED,
            PaxosMsg::Decide(_) => DECIDE,
            PaxosMsg::ProposalForward(_)
            | PaxosMsg::Compaction(_)
            | PaxosMsg::AcceptStopSign(_)
            | PaxosMsg::ForwardStopSign(_) => return None,
        },
    })
}

fn write_paxos(sink: &mut Sink<'_>, message: &PaxosMsg<Entry>, decided: &Decided, known: u64) -> Option<()> {
    match message {
        PaxosMsg::PrepareReq(PrepareReq { n }) | PaxosMsg::NotAccepted(NotAccepted { n }) => {
            write_ballot(sink, *n);
        }
        PaxosMsg::Prepare(prepare) => {
            write_ballot(sink, prepare.n);
            write_ballot(sink, prepare.n_accepted);
            write_index(sink, prepare.decided_idx);
            write_index(sink, prepare.accepted_idx);
        }
        PaxosMsg::Promise(promise) => {
            write_ballot(sink, promise.n);
            write_ballot(sink, promise.n_accepted);
            write_index(sink, promise.decided_idx);
            write_index(sink, promise.accepted_idx);
            write_sync(sink, promise.log_sync.as_ref(), decided, known);
        }
        PaxosMsg::AcceptSync(accept) => {
            write_ballot(sink, accept.n);
            write_sequence(sink, accept.seq_num);
            write_index(sink, accept.decided_idx);
            write_sync(sink, Some(&accept.log_sync), decided, known);
        }
        PaxosMsg::AcceptDecide(accept) => {
            write_ballot(sink, accept.n);
            write_sequence(sink, accept.seq_num);
            write_index(sink, accept.decided_idx);
            write_entries(sink, &accept.entries);
        }
        PaxosMsg::Accepted(accepted) => {
            write_ballot(sink, accepted.n);
            write_index(sink, accepted.accepted_idx);
        }
        PaxosMsg::Decide(decide) => {
            write_ballot(sink, decide.n);
            write_sequence(sink, decide.seq_num);
            write_index(sink, decide.decided_idx);
        }
        PaxosMsg::ProposalForward(_)
        | PaxosMsg::Compaction(_)
        | PaxosMsg::AcceptStopSign(_)
        | PaxosMsg::ForwardStopSign(_) => return None,
    }
    Some(())
}

pub(super) fn write_ballot(sink: &mut Sink<'_>, ballot: Ballot) {
    sink.u32(ballot.n);
    sink.u32(ballot.pid as u32);
}

pub(super) fn write_index(sink: &mut Sink<'_>, index: usize) {
    sink.octets(&(index as u64).to_le_bytes());
}

fn write_sequence(sink: &mut Sink<'_>, number: SequenceNumber) {
    sink.octets(&number.session.to_le_bytes());
    sink.octets(&number.counter.to_le_bytes());
}

pub(super) fn write_entries(sink: &mut Sink<'_>, entries: &[Entry]) {
    sink.u32(entries.len() as u32);
    entries.iter().for_each(|entry| entry.write(sink));
}

fn write_sync(sink: &mut Sink<'_>, sync: Option<&LogSync<Entry>>, decided: &Decided, known: u64) {
    let Some(sync) = sync else { return sink.octets(&[NO_SYNC]) };
    sink.octets(&[if sync.decided_snapshot.is_some() { SYNC_WITH_DECISIONS } else { SYNC }]);
    write_index(sink, sync.sync_idx);
    write_entries(sink, &sync.suffix);
    if sync.decided_snapshot.is_some() {
        decided.write_from(known, sink);
    }
}

/// A message from octets. Decisions in it go on where those end that are `known`.
pub(super) fn read(octets: &[u8], known: &Decided) -> Result<(Header, Body), Malformed> {
    let mut reader = Reader::new(octets, true);
    let [version, kind] = reader.array()?;
    if version != VERSION {
        return Err(Malformed::NotUnderstood);
    }
    let header = Header {
        active_ms: reader.u16()?,
        from: reader.u32()?,
        to: reader.u32()?,
        number: number(&mut reader)?,
        position: Position {
            next: reader.array().map(u64::from_le_bytes)?,
            decided: number(&mut reader)?,
            accepted: number(&mut reader)?,
        },
    };
    let body = read_body(kind, &mut reader, known)?;
    if reader.is_empty() { Ok((header, body)) } else { Err(Malformed::LengthOutOfRange) }
}

fn read_body(kind: u8, reader: &mut Reader<'_>, known: &Decided) -> Result<Body, Malformed> {
    Ok(match kind {
        HELLO => Body::Hello,
        PROPOSE => Body::Propose(Entry::read(reader)?),
        HEARTBEAT_REQUEST => {
            Body::Heartbeat(HeartbeatMsg::Request(HeartbeatRequest { round: reader.u32()? }))
        }
        HEARTBEAT_REPLY => Body::Heartbeat(HeartbeatMsg::Reply(HeartbeatReply {
            round: reader.u32()?,
            ballot: read_ballot(reader)?,
            leader: read_ballot(reader)?,
            happy: reader.boolean()?,
        })),
        PREPARE_REQUEST => Body::Paxos(PaxosMsg::PrepareReq(PrepareReq { n: read_ballot(reader)? })),
        NOT_ACCEPTED => Body::Paxos(PaxosMsg::NotAccepted(NotAccepted { n: read_ballot(reader)? })),
        PREPARE => Body::Paxos(PaxosMsg::Prepare(Prepare {
            n: read_ballot(reader)?,
            n_accepted: read_ballot(reader)?,
            decided_idx: read_index(reader)?,
            accepted_idx: read_index(reader)?,
        })),
        PROMISE => Body::Paxos(PaxosMsg::Promise(Promise {
            n: read_ballot(reader)?,
            n_accepted: read_ballot(reader)?,
            decided_idx: read_index(reader)?,
            accepted_idx: read_index(reader)?,
            log_sync: read_sync(reader, known)?,
        })),
        ACCEPT_SYNC => Body::Paxos(PaxosMsg::AcceptSync(AcceptSync {
            n: read_ballot(reader)?,
            seq_num: read_sequence(reader)?,
            decided_idx: read_index(reader)?,
            log_sync: read_sync(reader, known)?.ok_or(Malformed::MissingMember)?,
        })),
        ACCEPT_DECIDE => Body::Paxos(PaxosMsg::AcceptDecide(AcceptDecide {
            n: read_ballot(reader)?,
            seq_num: read_sequence(reader)?,
            decided_idx: read_index(reader)?,
            entries: read_entries(reader, UNDECIDED_MAX)?,
        })),
        ACCEPTED => Body::Paxos(PaxosMsg::Accepted(Accepted {
            n: read_ballot(reader)?,
            accepted_idx: read_index(reader)?,
        })),
        DECIDE => Body::Paxos(PaxosMsg::Decide(Decide {
            n: read_ballot(reader)?,
            seq_num: read_sequence(reader)?,
            decided_idx: read_index(reader)?,
        })),
        _ => return Err(Malformed::InvalidEnum),
    })
}

fn number(reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    let number = reader.array().map(u64::from_le_bytes)?;
    if number > NUMBER_MAX { Err(Malformed::LengthOutOfRange) } else { Ok(number) }
}

pub(super) fn read_index(reader: &mut Reader<'_>) -> Result<usize, Malformed> {
    usize::try_from(number(reader)?).map_err(|_| Malformed::LengthOutOfRange)
}

/// A ballot of one of the voters there may be, or none.
pub(super) fn read_ballot(reader: &mut Reader<'_>) -> Result<Ballot, Malformed> {
    let (n, pid) = (reader.u32()?, u64::from(reader.u32()?));
    match (n, pid) {
        (0, 0) => Ok(Ballot::default()),
        // A voter that has just started again says 0.
        (0..=BALLOT_MAX, pid) if (1..=VOTERS_MAX as u64).contains(&pid) => {
            Ok(Ballot::with(CONFIGURATION, n, 0, pid))
        }
        _ => Err(Malformed::LengthOutOfRange),
    }
}

fn read_sequence(reader: &mut Reader<'_>) -> Result<SequenceNumber, Malformed> {
    Ok(SequenceNumber { session: number(reader)?, counter: number(reader)? })
}

pub(super) fn read_entries(reader: &mut Reader<'_>, max: usize) -> Result<Vec<Entry>, Malformed> {
    let count = reader.count(max, ENTRY_BYTES_MIN)?;
    (0..count).map(|_| Entry::read(reader)).collect()
}

fn read_sync(reader: &mut Reader<'_>, known: &Decided) -> Result<Option<LogSync<Entry>>, Malformed> {
    let [flag] = reader.array()?;
    if flag == NO_SYNC {
        return Ok(None);
    }
    if !matches!(flag, SYNC | SYNC_WITH_DECISIONS) {
        return Err(Malformed::InvalidEnum);
    }
    let sync_idx = read_index(reader)?;
    let suffix = read_entries(reader, UNDECIDED_MAX)?;
    let decided_snapshot = (flag == SYNC_WITH_DECISIONS)
        .then(|| Decided::read(reader))
        .transpose()?
        .map(|decided| SnapshotType::Complete(Summary::Decided(decided.after(known))));
    Ok(Some(LogSync { decided_snapshot, suffix, sync_idx, stopsign: None }))
}
