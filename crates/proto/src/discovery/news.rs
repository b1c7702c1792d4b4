//! Messages among the participants of one process, which pass the wire by: they share their sockets and live
//! and die together, so nothing has to be proven, repeated, acknowledged or leased.
//!
//! A participant leaves its news with the others while it is locked, and the timer thread has them heard. So
//! nobody holds the locks of two participants, and listeners are called where they always may be. What comes
//! by the wire in the name of a participant of this process is dropped. Participants with other settings have
//! sockets of their own and are strangers.

use std::sync::Arc;

use super::builtin::ParticipantData;
use super::database::Remote;
use super::lead::Heard;
use super::matching::Endpoint;
use super::participant::Participant;
use super::path::Path;
use crate::guid::{Guid, GuidPrefix};
use crate::locator::Locator;
use crate::outbox::{Event, Outbox};
use crate::qos::LivelinessKind;
use crate::stats::DropReason;
use crate::time::Now;

/// A message of a participant for those of its process. The driver hands all of it to each of them, in order.
#[derive(Clone, Debug)]
pub struct News {
    of: GuidPrefix,
    matter: Matter,
}

#[derive(Clone, Debug)]
enum Matter {
    /// It is there, or announces something else of itself. Whether it can hear others for those of its
    /// process.
    Participant {
        data: Arc<ParticipantData>,
        can_lead: bool,
    },
    /// One of its endpoints is there, or changed.
    Endpoint(Guid, Arc<Endpoint>),
    EndpointGone(Guid),
    /// It asserts the liveliness of its writers of that kind.
    Alive(LivelinessKind),
    Left,
    /// What it heard of other processes, as their lead.
    Heard(Heard),
}

/// Messages that wait, if there may be others of this process.
#[derive(Debug, Default)]
pub(super) struct ProcessMessages {
    begun: bool,
    news: Vec<News>,
}

impl Participant {
    /// From now on [`Self::take_news`] has the messages for others of this process, which are not reached by
    /// the wire.
    pub const fn share_process(&mut self) {
        self.process_messages.begun = true;
    }

    /// The messages of the calls since the last time for the others of this process.
    #[must_use]
    pub fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.process_messages.news)
    }

    /// Whether [`Self::take_news`] has something.
    #[must_use]
    pub const fn has_news(&self) -> bool {
        !self.process_messages.news.is_empty()
    }

    /// All messages for a participant that is new in this process; those that it has had do no harm. From now
    /// on [`Self::take_news`] has what follows.
    #[must_use]
    pub fn introduction(&mut self) -> Vec<News> {
        self.process_messages.begun = true;
        if !self.is_present() {
            return Vec::new();
        }
        let own = self.matching.shared_of(self.config.prefix);
        let endpoints = own.map(|(guid, endpoint)| Matter::Endpoint(guid, Arc::clone(endpoint)));
        let heard = self.all_heard().into_iter().map(Matter::Heard);
        let of = self.config.prefix;
        let matters = std::iter::once(self.matter_of_participant()).chain(endpoints).chain(heard);
        matters.map(|matter| News { of, matter }).collect()
    }

    /// Whether there may be others of this process.
    pub(super) const fn is_shared(&self) -> bool {
        self.process_messages.begun
    }

    fn matter_of_participant(&self) -> Matter {
        Matter::Participant { data: Arc::clone(&self.announced), can_lead: self.can_lead() }
    }

    fn enqueue(&mut self, matter: impl FnOnce(&Self) -> Matter) {
        if self.is_shared() && self.is_present() {
            let news = News { of: self.config.prefix, matter: matter(self) };
            self.process_messages.news.push(news);
        }
    }

    /// We are there.
    pub(super) fn enqueue_all(&mut self) {
        if self.is_shared() {
            self.process_messages.news = self.introduction();
        }
    }

    /// What we announce of ourselves is something else now.
    pub(super) fn enqueue_participant(&mut self) {
        self.enqueue(Self::matter_of_participant);
    }

    /// What we heard, as the lead of others of this process.
    pub(super) fn enqueue_heard(&mut self, heard: impl FnOnce(&Self) -> Heard) {
        self.enqueue(|it| Matter::Heard(heard(it)));
    }

    pub(super) fn enqueue_endpoint(&mut self, guid: Guid, endpoint: &Arc<Endpoint>) {
        self.enqueue(|_| Matter::Endpoint(guid, Arc::clone(endpoint)));
    }

    pub(super) fn enqueue_endpoint_gone(&mut self, guid: Guid) {
        self.enqueue(|_| Matter::EndpointGone(guid));
    }

    pub(super) fn enqueue_alive(&mut self, kind: LivelinessKind) {
        self.enqueue(|_| Matter::Alive(kind));
    }

    pub(super) fn enqueue_left(&mut self) {
        self.enqueue(|_| Matter::Left);
    }

    /// A message of another participant of this process.
    pub fn on_news(&mut self, now: Now, news: &News, out: &mut Outbox) {
        let News { of, matter } = news;
        if self.has_left() || *of == self.config.prefix {
            return;
        }
        match matter {
            Matter::Heard(heard) => self.on_heard(now, *of, heard, out),
            _ if self.matching.ignored.has_participant(*of) => {}
            Matter::Participant { data, can_lead } => {
                self.on_process_participant(now, *of, data, *can_lead, out);
            }
            // What follows is of no use without.
            _ if !self.database.is_of_own_process(*of) => {}
            Matter::Endpoint(guid, endpoint) => {
                if let Err(reason) = self.on_process_endpoint(*guid, endpoint, out) {
                    self.drops.count(reason);
                }
            }
            Matter::EndpointGone(guid) => self.forget_endpoint(*guid, out),
            Matter::Alive(kind) => self.matching.assert_liveliness(*of, *kind, out),
            Matter::Left => self.forget(now, *of, out),
        }
        self.review_lead(now, *of, matches!(matter, Matter::Left), out);
    }

    fn on_process_participant(
        &mut self,
        now: Now,
        of: GuidPrefix,
        data: &Arc<ParticipantData>,
        can_lead: bool,
        out: &mut Outbox,
    ) {
        let here = self.local_meta();
        let from = here.unwrap_or_else(|| Locator::udp([127, 0, 0, 1].into(), 0));
        if !self.database.is_of_own_process(of) {
            // Whoever else used its name is gone.
            self.forget(now, of, out);
            self.finish_forgetting(of, out);
            self.database.insert(of, Remote::of_own_process(now.mono, Arc::clone(data), from));
        }
        let Some(remote) = self.database.get_mut(of) else { return };
        remote.can_lead = can_lead;
        if remote.matched.is_none() || remote.data != *data {
            remote.data = Arc::clone(data);
            remote.last_heard = now.mono;
            (remote.from, remote.matched) = (from, Some(Path { locator: from, same_host: true }));
            out.events.push(Event::ParticipantChanged { participant: of.participant(), alive: true });
        }
    }

    fn on_process_endpoint(
        &mut self,
        guid: Guid,
        endpoint: &Arc<Endpoint>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        if let Some(types) = &endpoint.process_types
            && !self.matching.types.add_of_process(guid.prefix, types)
        {
            self.drops.count(DropReason::DiscoveryLimit);
        }
        // One for all participants of a process, unless interfaces change.
        let is_alike = endpoint.path == self.local_path;
        let elsewhere = || Arc::new(Endpoint { path: self.local_path.clone(), ..(**endpoint).clone() });
        let endpoint = if is_alike { Arc::clone(endpoint) } else { elsewhere() };
        self.admit(guid, endpoint, out)
    }

    /// Our own sockets are elsewhere: so are those of all of this process.
    pub(super) fn move_process(&mut self, out: &mut Outbox) {
        let path = self.local_path.clone();
        let others =
            self.database.iter().filter(|(_, remote)| remote.is_of_own_process).map(|(prefix, _)| prefix);
        let prefixes: Vec<GuidPrefix> = others.chain([self.config.prefix]).collect();
        for prefix in prefixes {
            let guids: Vec<Guid> = self.matching.of(prefix).map(|(guid, _)| guid).collect();
            for guid in guids {
                self.matching.set_path(guid, path.clone(), out);
            }
        }
    }
}
