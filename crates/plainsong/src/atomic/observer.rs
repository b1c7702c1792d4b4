//! A group from outside: what its members tell one another, heard by a participant that is none of them. It
//! has the endpoints for messages alone; members answer when it asks for their view, and count it nowhere.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use plainsong_proto::atomic::entry::Entry;
use plainsong_proto::atomic::view::{Ranks, Storage, View};
use plainsong_proto::atomic::{Destination, GroupLimits, MEMBERS_MAX, MemberId, Message, SUSPENDED_AFTER};
use plainsong_proto::discovery::DiscoveryError;
use plainsong_proto::guid::Guid;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::PayloadPool;
use plainsong_proto::reader::{CachedSamples, ReaderLimits};
use plainsong_proto::time::{Duration, Instant, Now};
use plainsong_proto::writer::WriterLimits;

use super::lane::{self, Addressee, Channel};
use super::name::Name;
use super::voting::MESSAGES;
use super::{ObservedGroup, ObservedMember};
use crate::base::clock;
use crate::base::locks::lock;
use crate::runtime::{ParticipantSlot, Rank, dispatch};

/// Members, and those who would be, of which something is remembered.
const HEARD_MAX: usize = 2 * MEMBERS_MAX;

pub(crate) struct Observer {
    name: Name,
    slot: Arc<ParticipantSlot>,
    /// Its two endpoints, once it is known who votes: members with other voters have other endpoints.
    messages: OnceLock<Channel>,
    keys: [u32; 2],
    limits: (WriterLimits, ReaderLimits),
    messages_max: i32,
    pool: PayloadPool,
    /// Whom members answer.
    own: MemberId,
    lease: Duration,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    view: Option<Arc<View>>,
    view_since: Option<Instant>,
    members: BTreeMap<MemberId, Heard>,
    joining: BTreeMap<MemberId, Instant>,
    ask_due: Option<Instant>,
    samples: CachedSamples,
}

/// The last that a member told.
#[derive(Clone, Copy)]
struct Heard {
    at: Instant,
    epoch: (u64, u64),
    position: Option<u64>,
    hears: Ranks,
    is_caught_up: bool,
    is_held: bool,
    /// Since when it has stopped in that epoch.
    changing_since: Option<Instant>,
}

impl Observer {
    pub(crate) fn new(
        name: Name,
        slot: &Arc<ParticipantSlot>,
        keys: [u32; 2],
        limits: (WriterLimits, ReaderLimits),
    ) -> Self {
        let bounds = GroupLimits::default();
        Self {
            name,
            slot: Arc::clone(slot),
            messages: OnceLock::new(),
            keys,
            limits,
            messages_max: bounds.messages_max * 4,
            pool: PayloadPool::new(),
            own: MemberId { prefix: slot.prefix, nonce: clock::seed() },
            lease: bounds.lease,
            seen: Mutex::default(),
        }
    }

    /// Its endpoints, if any member is known.
    fn messages(&self) -> Result<Option<&Channel>, DiscoveryError> {
        if let Some(known) = self.messages.get() {
            return Ok(Some(known));
        }
        let topic = self.name.of_endpoints();
        let found = self.slot.look(|control| {
            let is_it = |it: &&str| it.starts_with(MESSAGES);
            let mut of_group =
                control.remote_endpoints().filter(|it| it.topic == topic).map(|it| it.type_name);
            of_group.find(is_it).map(str::to_owned)
        });
        let Some(type_name) = found else { return Ok(None) };
        let mut keys = self.keys.into_iter();
        let next_key = || keys.next().unwrap_or_default();
        let limits = self.limits.clone();
        let channel = Channel::observed(self.slot.prefix, next_key, limits, self.messages_max, &type_name);
        let mut is_new = false;
        let channel = self.messages.get_or_init(|| {
            is_new = true;
            channel
        });
        if is_new {
            channel.announce(&self.slot, &self.name)?;
        }
        Ok(Some(channel))
    }

    /// Takes what has come, asks for what is missing, and tells what is known.
    pub(crate) fn look(&self) -> Result<ObservedGroup, DiscoveryError> {
        let now = clock::now();
        let Some(messages) = self.messages()? else {
            let _rank = Rank::Group.hold();
            return Ok(lock(&self.seen).describe(&self.name, now.mono, self.lease));
        };
        let own = Addressee { member: Some(self.own), voter: None, has_lasting_voters: true };
        let mut group = dispatch::with_outbox(|out| {
            let group = {
                let _rank = Rank::Group.hold();
                let mut seen = lock(&self.seen);
                let mut samples = std::mem::take(&mut seen.samples);
                messages.take(&self.slot, now, &mut samples, out);
                for sample in samples.iter().filter(|sample| sample.info.valid_data) {
                    let from = Guid::from(sample.info.publication_handle).prefix;
                    // What it does not understand is none of its business.
                    if let Ok(Some(message)) = lane::message(sample, from, own) {
                        seen.hear(now.mono, message, self.lease);
                    }
                }
                samples.clear();
                seen.samples = samples;
                if seen.ask_due.is_none_or(|due| due <= now.mono) {
                    seen.ask_due = now.mono.after(Duration(self.lease.0 / 10));
                    self.ask(messages, now, out);
                }
                seen.describe(&self.name, now.mono, self.lease)
            };
            self.slot.report(out);
            group
        });
        self.slot.look(|control| {
            for member in &mut group.members {
                let known = control.remote_participants().find(|it| it.guid == member.participant);
                member.name = known.map(|it| it.name.to_owned()).unwrap_or_default();
            }
        });
        Ok(group)
    }

    /// All members answer with the view that they have.
    fn ask(&self, messages: &Channel, now: Now, out: &mut Outbox) {
        let ask: Message<Entry> = Message::AskView { from: self.own, epoch: 0 };
        messages.writer.run(self.slot.shared(), now, out, |writer, now, out| {
            // It is asked again anyway.
            let _ = lane::send_message(writer, &self.pool, now, (Destination::Group, &ask), out);
        });
    }

    /// Others know it no more.
    pub(crate) fn close(&self) {
        if let Some(messages) = self.messages.get() {
            messages.withdraw(&self.slot);
        }
    }
}

impl Seen {
    fn hear(&mut self, now: Instant, message: Message<Entry>, lease: Duration) {
        match message {
            Message::Row(row) => {
                let heard = Heard {
                    at: now,
                    epoch: (row.instance, row.epoch),
                    position: Some(row.position),
                    hears: row.hears,
                    is_caught_up: row.caught_up,
                    is_held: row.is_held,
                    changing_since: None,
                };
                self.note(row.from, heard);
            }
            Message::Report { instance, report } => {
                let epoch = (instance, report.epoch);
                let known = self.members.get(&report.id);
                let since = known.filter(|it| it.epoch == epoch).and_then(|it| it.changing_since);
                let heard = Heard {
                    at: now,
                    epoch,
                    position: known.and_then(|it| it.position),
                    hears: report.hears,
                    is_caught_up: report.caught_up,
                    is_held: known.is_some_and(|it| it.is_held),
                    changing_since: since.or(Some(now)),
                };
                self.note(report.id, heard);
            }
            Message::Join(join) => {
                self.joining.retain(|_, heard| now.since(*heard) < lease);
                if self.joining.len() < HEARD_MAX {
                    self.joining.insert(join.from, now);
                }
            }
            Message::NewView(decision) => self.know(now, &Arc::new(decision.next.clone()), lease),
            Message::Current(view) => self.know(now, &view, lease),
            _ => {}
        }
    }

    fn note(&mut self, id: MemberId, heard: Heard) {
        let (instance, epoch) = heard.epoch;
        if self.view.as_ref().is_none_or(|it| it.instance != instance || it.epoch < epoch) {
            self.ask_due = None;
        }
        if self.members.len() >= HEARD_MAX && !self.members.contains_key(&id) {
            let oldest = self.members.iter().min_by_key(|(_, heard)| heard.at).map(|(id, _)| *id);
            oldest.and_then(|id| self.members.remove(&id));
        }
        self.members.insert(id, heard);
    }

    /// Of the older group the newer view, unless nobody of that is heard any more.
    fn know(&mut self, now: Instant, view: &Arc<View>, lease: Duration) {
        let is_newer = self.view.as_ref().is_none_or(|known| {
            let is_heard = known.members.iter().any(|it| self.is_heard(now, it.id, lease));
            view.instance < known.instance
                || view.instance == known.instance && view.epoch > known.epoch
                || view.instance != known.instance && !is_heard
        });
        if is_newer {
            self.view = Some(Arc::clone(view));
            self.view_since = Some(now);
        }
    }

    fn is_heard(&self, now: Instant, id: MemberId, lease: Duration) -> bool {
        self.members.get(&id).is_some_and(|heard| now.since(heard.at) < lease)
    }

    fn describe(&self, name: &Name, now: Instant, lease: Duration) -> ObservedGroup {
        let mut group = ObservedGroup {
            topic: name.topic.clone(),
            partition: name.partition.clone(),
            epoch: 0,
            position: 0,
            is_changing: false,
            is_suspended: false,
            members: Vec::new(),
            joining: Vec::new(),
        };
        let wishes = self.joining.iter().filter(|(_, heard)| now.since(**heard) < lease);
        group.joining = wishes.map(|(id, _)| id.prefix.participant()).collect();
        let Some(view) = &self.view else { return group };
        // Who was taken in a moment ago.
        group.joining.retain(|guid| !view.members.iter().any(|it| it.id.prefix == guid.prefix));
        group.epoch = view.epoch;
        let known =
            |id: MemberId| self.members.get(&id).filter(|heard| heard.epoch == (view.instance, view.epoch));
        let all = view.members.iter().map(|it| it.id);
        group.position = all.clone().filter_map(|id| known(id)?.position).max().unwrap_or(view.base_position);
        for (rank, place) in view.members.iter().enumerate() {
            let id = place.id;
            let heard = known(id);
            let last = heard.map(|it| it.at).or(self.view_since).unwrap_or(now);
            let doubts = |it: &Heard| now.since(it.at) < lease && !it.hears.has(rank);
            group.members.push(ObservedMember {
                participant: id.prefix.participant(),
                name: String::new(),
                position: heard.and_then(|it| it.position),
                is_caught_up: heard.is_some_and(|it| it.is_caught_up),
                is_stored: place.storage != Storage::None,
                is_held: heard.is_some_and(|it| it.is_held),
                is_changing: heard.is_some_and(|it| it.changing_since.is_some()),
                is_suspected: now.since(last) >= lease || all.clone().filter_map(known).any(doubts),
                silent_for: now.since(last),
            });
        }
        group.is_changing = group.members.iter().any(|it| it.is_changing);
        let is_stuck =
            |it: &Heard| it.changing_since.is_some_and(|since| now.since(since) >= SUSPENDED_AFTER);
        // Whose vote counts can be told where the members vote.
        let votes = |id: &MemberId| view.voters.contains(&id.voter());
        let voters = all.clone().filter(votes).count();
        let heard = all.clone().filter(votes).filter(|id| self.is_heard(now, *id, lease)).count();
        let is_without_voters = voters == view.voters.len() && heard * 2 <= voters;
        group.is_suspended = all.filter_map(known).any(is_stuck)
            || is_without_voters && self.view_since.is_some_and(|since| now.since(since) >= lease);
        group
    }
}
