//! A group from outside: what its members tell one another, heard by a participant that is none of them. It
//! has the endpoints for messages alone; members answer when it asks for their view, and count it nowhere.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use plainsong_proto::atomic::entry::Entry;
use plainsong_proto::atomic::view::{Place, Ranks, Storage, View};
use plainsong_proto::atomic::{Destination, GroupLimits, MEMBERS_MAX, MemberId, Message, SUSPENDED_AFTER};
use plainsong_proto::discovery::DiscoveryError;
use plainsong_proto::guid::{Guid, GuidPrefix};
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::PayloadPool;
use plainsong_proto::reader::{CachedSamples, ReaderLimits};
use plainsong_proto::time::{Duration, Instant, Now};
use plainsong_proto::writer::WriterLimits;

use super::lane::{self, Addressee, Channel};
use super::name::Name;
use super::voter::{AtomicVoter, People, is_majority};
use super::voting::{MESSAGES, Voting};
use super::{AtomicStranger, ObservedGroup, ObservedMember};
use crate::base::clock;
use crate::base::locks::lock;
use crate::runtime::{ParticipantSlot, Rank, dispatch};

/// Members, and those who would be, of which something is remembered.
const HEARD_MAX: usize = 2 * MEMBERS_MAX;
/// Groups of one topic that are followed: more than those who forget a variable make.
const GROUPS_MAX: usize = 8;

pub(crate) struct Observer {
    name: Name,
    slot: Arc<ParticipantSlot>,
    limits: (WriterLimits, ReaderLimits),
    messages_max: i32,
    pool: PayloadPool,
    /// Whom members answer.
    own: MemberId,
    lease: Duration,
    /// Members with other voters have other endpoints, and are another group.
    followed: Mutex<Vec<Followed>>,
}

/// One group of the topic.
struct Followed {
    type_name: String,
    /// The names of the voters; none where the members vote.
    voters: Vec<String>,
    messages: Channel,
    seen: Seen,
}

#[derive(Default)]
struct Seen {
    view: Option<Arc<View>>,
    view_since: Option<Instant>,
    members: BTreeMap<MemberId, Heard>,
    joining: BTreeMap<MemberId, Instant>,
    /// When participants were heard last, voters that are no members among them.
    voices: BTreeMap<GuidPrefix, Instant>,
    ask_due: Option<Instant>,
    samples: CachedSamples,
}

/// The last that a member told.
#[derive(Clone, Copy)]
struct Heard {
    at: Instant,
    /// Whose participant speaks: after a restart another than that of the member.
    speaker: MemberId,
    epoch: (u64, u64),
    position: Option<u64>,
    hears: Ranks,
    is_caught_up: bool,
    is_held: bool,
    /// Since when it has stopped in that epoch.
    changing_since: Option<Instant>,
}

impl Observer {
    pub(crate) fn new(name: Name, slot: &Arc<ParticipantSlot>, limits: (WriterLimits, ReaderLimits)) -> Self {
        let bounds = GroupLimits::default();
        Self {
            name,
            slot: Arc::clone(slot),
            limits,
            messages_max: bounds.messages_max * 4,
            pool: PayloadPool::new(),
            own: MemberId { prefix: slot.prefix, nonce: clock::seed() },
            lease: bounds.lease,
            followed: Mutex::default(),
        }
    }

    /// Begins to follow groups of which members have come, and follows none any more of which nobody is left
    /// while there is another.
    fn follow(
        &self,
        followed: &mut Vec<Followed>,
        mut next_key: impl FnMut() -> u32,
    ) -> Result<(), DiscoveryError> {
        let topic = self.name.of_endpoints();
        let there: BTreeSet<String> = self.slot.look(|control| {
            let of_topic = control.remote_endpoints().filter(|it| it.topic == topic);
            of_topic.map(|it| it.type_name).filter(|it| it.starts_with(MESSAGES)).map(str::to_owned).collect()
        });
        if !there.is_empty() {
            for gone in followed.extract_if(.., |it| !there.contains(&it.type_name)) {
                gone.messages.withdraw(&self.slot);
            }
        }
        for type_name in there {
            let Some(names) = Voting::names_in(&type_name, MESSAGES) else { continue };
            if followed.len() >= GROUPS_MAX || followed.iter().any(|it| it.type_name == type_name) {
                continue;
            }
            let (prefix, limits) = (self.slot.prefix, self.limits.clone());
            let messages = Channel::observed(prefix, &mut next_key, limits, self.messages_max, &type_name);
            messages.announce(&self.slot, &self.name)?;
            let names = names.split(',').filter(|it| !it.is_empty());
            let voters = names.map(ToOwned::to_owned).collect();
            followed.push(Followed { type_name, voters, messages, seen: Seen::default() });
        }
        Ok(())
    }

    /// Takes what has come, asks for what is missing, and tells what is known of each group of the topic; of
    /// one of which nothing is known where there is none.
    pub(crate) fn look(&self, next_key: impl FnMut() -> u32) -> Result<Vec<ObservedGroup>, DiscoveryError> {
        let now = clock::now();
        let mut followed = lock(&self.followed);
        self.follow(&mut followed, next_key)?;
        let people = self.slot.look(People::of);
        let mut groups: Vec<ObservedGroup> = Vec::new();
        dispatch::with_outbox(|out| {
            for followed in followed.iter_mut() {
                let _rank = Rank::Group.hold();
                self.hear(followed, now, out);
                groups.push(followed.seen.describe(
                    &self.name,
                    &followed.voters,
                    &people,
                    now.mono,
                    self.lease,
                ));
            }
            self.slot.report(out);
        });
        if groups.is_empty() {
            groups.push(Seen::default().describe(&self.name, &[], &people, now.mono, self.lease));
        }
        // A witness waits for members of a group that nobody is in.
        if groups.iter().any(ObservedGroup::is_there) {
            groups.retain(ObservedGroup::is_there);
        }
        groups.sort_by_key(|it| (Reverse(it.members.len()), it.voter_names.clone()));
        tell_of_strangers(&mut groups);
        Ok(groups)
    }

    fn hear(&self, followed: &mut Followed, now: Now, out: &mut Outbox) {
        let Followed { messages, seen, .. } = followed;
        let own = Addressee { member: Some(self.own), voter: None, has_lasting_voters: true };
        let mut samples = std::mem::take(&mut seen.samples);
        messages.take(&self.slot, now, &mut samples, out);
        for sample in samples.iter().filter(|sample| sample.info.valid_data) {
            let from = Guid::from(sample.info.publication_handle).prefix;
            if seen.voices.len() < HEARD_MAX || seen.voices.contains_key(&from) {
                seen.voices.insert(from, now.mono);
            }
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
    }

    /// All members answer with the view that they have.
    fn ask(&self, messages: &Channel, now: Now, out: &mut Outbox) {
        let ask: Message<Arc<Entry>> = Message::AskView { from: self.own, epoch: 0 };
        messages.writer.run(self.slot.shared(), now, out, |writer, now, out| {
            // It is asked again anyway.
            let _ = lane::send_message(writer, &self.pool, now, (Destination::Group, &ask), out);
        });
    }

    /// Others know it no more.
    pub(crate) fn close(&self) {
        lock(&self.followed).drain(..).for_each(|it| it.messages.withdraw(&self.slot));
    }
}

/// Each group is told of the participants of the others.
fn tell_of_strangers(groups: &mut [ObservedGroup]) {
    let participants = |group: &ObservedGroup| -> Vec<AtomicStranger> {
        let members = group.members.iter().map(|it| it.participant);
        let voters = group.voter_names.join(",");
        let stranger = |participant| AtomicStranger { participant, voters: voters.clone() };
        members.chain(group.joining.iter().copied()).map(stranger).collect()
    };
    let all: Vec<_> = groups.iter().map(participants).collect();
    for (place, group) in groups.iter_mut().enumerate() {
        let others = all.iter().enumerate().filter(|(other, _)| *other != place);
        group.strangers = others.flat_map(|(_, participants)| participants.clone()).collect();
    }
}

impl Seen {
    fn hear(&mut self, now: Instant, message: Message<Arc<Entry>>, lease: Duration) {
        match message {
            Message::Row(row) => {
                let heard = Heard {
                    at: now,
                    speaker: row.from,
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
                    speaker: report.speaker(),
                    epoch,
                    position: Some(report.position),
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

    fn describe(
        &self,
        name: &Name,
        voters: &[String],
        people: &People,
        now: Instant,
        lease: Duration,
    ) -> ObservedGroup {
        let wishes = self.joining.iter().filter(|(_, heard)| now.since(**heard) < lease);
        let mut group = ObservedGroup {
            topic: name.topic.clone(),
            partition: name.partition.clone(),
            epoch: 0,
            position: 0,
            is_changing: false,
            is_suspended: false,
            members: Vec::new(),
            joining: wishes.map(|(id, _)| id.prefix.participant()).collect(),
            voter_names: voters.to_vec(),
            voters: Vec::new(),
            strangers: Vec::new(),
        };
        if let Some(view) = &self.view {
            // Who was taken in a moment ago.
            group.joining.retain(|guid| !view.members.iter().any(|it| it.id.prefix == guid.prefix));
            group.epoch = view.epoch;
            group.members = self.members(view, people, now, lease);
            let position = group.members.iter().filter_map(|it| it.position).max();
            group.position = position.unwrap_or(view.base_position);
        }
        group.is_changing = group.members.iter().any(|it| it.is_changing);
        group.voters = self.voters(&group, people, now);
        group.is_suspended = self.is_suspended(&group, now, lease);
        group
    }

    fn members(&self, view: &View, people: &People, now: Instant, lease: Duration) -> Vec<ObservedMember> {
        let known =
            |id: MemberId| self.members.get(&id).filter(|heard| heard.epoch == (view.instance, view.epoch));
        let all = || view.members.iter().filter_map(|it| known(it.id));
        let member = |(rank, place): (usize, &Place)| {
            let heard = known(place.id);
            let last = heard.map(|it| it.at).or(self.view_since).unwrap_or(now);
            let doubts = |it: &Heard| now.since(it.at) < lease && !it.hears.has(rank);
            let participant = heard.map_or(place.id, |it| it.speaker).prefix.participant();
            let person = people.get(participant);
            ObservedMember {
                participant,
                name: person.map(|it| it.name.clone()).unwrap_or_default(),
                process: person.map(|it| it.process.clone()).unwrap_or_default(),
                voter: person.and_then(|it| it.voter.clone()),
                position: heard.and_then(|it| it.position),
                is_caught_up: heard.is_some_and(|it| it.is_caught_up),
                is_stored: place.storage != Storage::None,
                is_held: heard.is_some_and(|it| it.is_held),
                is_changing: heard.is_some_and(|it| it.changing_since.is_some()),
                is_suspected: now.since(last) >= lease || all().any(doubts),
                silent_for: now.since(last),
            }
        };
        view.members.iter().enumerate().map(member).collect()
    }

    /// Those who vote, and whether they are heard.
    fn voters(&self, group: &ObservedGroup, people: &People, now: Instant) -> Vec<AtomicVoter> {
        // Who has nothing to say is silent as long as nothing changes.
        let is_quiet = !group.is_changing && group.joining.is_empty();
        let was_heard = |guid: Guid| {
            let heard = self.voices.get(&guid.prefix);
            is_quiet || heard.is_some_and(|at| now.since(*at) < SUSPENDED_AFTER)
        };
        let is_heard = |guid: Guid| {
            let member = group.members.iter().find(|it| it.participant == guid);
            member.map_or_else(|| was_heard(guid), |it| !it.is_suspected)
        };
        if !group.voter_names.is_empty() {
            let of_name = |name: &String| {
                let all = || people.voters(name);
                let heard = all().find(|guid| is_heard(*guid));
                let participant = heard.or_else(|| all().next());
                AtomicVoter { name: name.clone(), participant, is_heard: heard.is_some() }
            };
            return group.voter_names.iter().map(of_name).collect();
        }
        let Some(view) = &self.view else { return Vec::new() };
        let members = || view.members.iter().zip(&group.members);
        let of_view = |id: &_| {
            let member = members().find(|(place, _)| place.id.voter() == *id).map(|(_, member)| member);
            let name = member.map(ObservedMember::person);
            AtomicVoter {
                name: name.unwrap_or_else(|| "one that is no member any more".to_owned()),
                participant: member.map(|it| it.participant),
                is_heard: member.is_some_and(|it| !it.is_suspected),
            }
        };
        view.voters.iter().map(of_view).collect()
    }

    fn is_suspended(&self, group: &ObservedGroup, now: Instant, lease: Duration) -> bool {
        let is_stuck =
            |it: &Heard| it.changing_since.is_some_and(|since| now.since(since) >= SUSPENDED_AFTER);
        let Some(view) = &self.view else {
            return !group.joining.is_empty() && !group.voters.is_empty() && !is_majority(&group.voters);
        };
        let of_epoch = self.members.values().filter(|it| it.epoch == (view.instance, view.epoch));
        let is_known =
            group.voters.iter().all(|it| it.participant.is_some()) || !group.voter_names.is_empty();
        let is_settled = self.view_since.is_some_and(|since| now.since(since) >= lease);
        of_epoch.into_iter().any(is_stuck)
            || is_known && is_settled && !group.voters.is_empty() && !is_majority(&group.voters)
    }
}
