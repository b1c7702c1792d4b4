//! What the participants of one process tell each other without the wire: they share their sockets and live and die together,
//! so nothing has to be proven, repeated, acknowledged or leased.
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

/// What a participant has to tell those of its process. The driver hands all of it to each of them, in order.
#[derive(Clone, Debug)]
pub struct News {
    of: GuidPrefix,
    matter: Matter,
}

#[derive(Clone, Debug)]
enum Matter {
    /// It is there, or announces something else of itself. Whether it can hear others for those of its process.
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

/// What waits to be told, if anybody of this process is to be told.
#[derive(Debug, Default)]
pub(super) struct Telling {
    begun: bool,
    news: Vec<News>,
}

impl Participant {
    /// From now on [`Self::take_news`] has what others of this process are to be told, who are not reached by the wire.
    pub const fn share_process(&mut self) {
        self.telling.begun = true;
    }

    /// What the calls since the last time have to tell the others of this process.
    #[must_use]
    pub fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.telling.news)
    }

    /// Whether [`Self::take_news`] has something.
    #[must_use]
    pub const fn has_news(&self) -> bool {
        !self.telling.news.is_empty()
    }

    /// All that a participant is to be told that is new in this process; what was told before does no harm. From now on
    /// [`Self::take_news`] has what follows.
    #[must_use]
    pub fn introduction(&mut self) -> Vec<News> {
        self.telling.begun = true;
        if !self.is_present() {
            return Vec::new();
        }
        let own = self.matching.of(self.config.prefix);
        let endpoints = own.map(|(guid, endpoint)| Matter::Endpoint(guid, Arc::new(endpoint.clone())));
        let heard = self.all_heard().into_iter().map(Matter::Heard);
        let of = self.config.prefix;
        let matters = std::iter::once(self.matter_of_participant()).chain(endpoints).chain(heard);
        matters.map(|matter| News { of, matter }).collect()
    }

    /// Whether there may be others of this process to be told.
    pub(super) const fn is_telling(&self) -> bool {
        self.telling.begun
    }

    fn matter_of_participant(&self) -> Matter {
        Matter::Participant { data: Arc::new(self.participant_data()), can_lead: self.can_lead() }
    }

    fn tell(&mut self, matter: impl FnOnce(&Self) -> Matter) {
        if self.is_telling() && self.is_present() {
            let news = News { of: self.config.prefix, matter: matter(self) };
            self.telling.news.push(news);
        }
    }

    /// We are there.
    pub(super) fn tell_all(&mut self) {
        if self.is_telling() {
            self.telling.news = self.introduction();
        }
    }

    /// What we announce of ourselves is something else now.
    pub(super) fn tell_participant(&mut self) {
        self.tell(Self::matter_of_participant);
    }

    /// What we heard, as the lead of others of this process.
    pub(super) fn tell_heard(&mut self, heard: impl FnOnce(&Self) -> Heard) {
        self.tell(|it| Matter::Heard(heard(it)));
    }

    pub(super) fn tell_endpoint(&mut self, guid: Guid, endpoint: &Endpoint) {
        self.tell(|_| Matter::Endpoint(guid, Arc::new(endpoint.clone())));
    }

    pub(super) fn tell_endpoint_gone(&mut self, guid: Guid) {
        self.tell(|_| Matter::EndpointGone(guid));
    }

    pub(super) fn tell_alive(&mut self, kind: LivelinessKind) {
        self.tell(|_| Matter::Alive(kind));
    }

    pub(super) fn tell_left(&mut self) {
        self.tell(|_| Matter::Left);
    }

    /// Another participant of this process told something.
    pub fn on_news(&mut self, now: Now, news: &News, out: &mut Outbox) {
        let News { of, matter } = news;
        if self.has_left() || *of == self.config.prefix {
            return;
        }
        match matter {
            Matter::Heard(heard) => self.on_heard(now, *of, heard, out),
            _ if self.matching.ignored.has_participant(*of) => {}
            Matter::Participant { data, can_lead } => {
                self.on_told_participant(now, *of, data, *can_lead, out);
            }
            // What follows is of no use without.
            _ if !self.database.is_told(*of) => {}
            Matter::Endpoint(guid, endpoint) => {
                if let Err(reason) = self.on_told_endpoint(*guid, endpoint, out) {
                    self.drops.count(reason);
                }
            }
            Matter::EndpointGone(guid) => self.forget_endpoint(*guid, out),
            Matter::Alive(kind) => self.matching.assert_liveliness(*of, *kind, out),
            Matter::Left => self.forget(now, *of, out),
        }
        self.review_lead(now, *of, matches!(matter, Matter::Left), out);
    }

    fn on_told_participant(
        &mut self,
        now: Now,
        of: GuidPrefix,
        data: &Arc<ParticipantData>,
        can_lead: bool,
        out: &mut Outbox,
    ) {
        let here = self.local_path().urgent;
        let from = here.unwrap_or_else(|| Locator::udp([127, 0, 0, 1].into(), 0));
        if !self.database.is_told(of) {
            // Whoever else used its name is gone.
            self.forget(now, of, out);
            self.finish_forgetting(of, out);
            self.database.insert(of, Remote::told(now.mono, (**data).clone(), from));
        }
        let Some(remote) = self.database.get_mut(of) else { return };
        remote.can_lead = can_lead;
        if remote.matched.is_none() || remote.data != **data {
            remote.data.clone_from(data);
            remote.last_heard = now.mono;
            (remote.from, remote.matched) = (from, Some(Path { locator: from, same_host: true }));
            out.events.push(Event::ParticipantChanged { participant: of.participant(), alive: true });
        }
    }

    fn on_told_endpoint(
        &mut self,
        guid: Guid,
        endpoint: &Endpoint,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        if let Some(description) = &endpoint.description {
            for (hash, serialized) in &description.objects {
                let is_known = self.matching.types.own(hash).is_some();
                if !is_known && !self.matching.types.add(guid.prefix, *hash, serialized) {
                    self.drops.count(DropReason::DiscoveryLimit);
                }
            }
        }
        let endpoint = Endpoint { path: self.local_path(), description: None, ..endpoint.clone() };
        self.admit(guid, endpoint, out)
    }

    /// Our own sockets are elsewhere: so are those of all of this process.
    pub(super) fn move_process(&mut self, out: &mut Outbox) {
        let path = self.local_path();
        let told = self.database.iter().filter(|(_, remote)| remote.is_told).map(|(prefix, _)| prefix);
        let prefixes: Vec<GuidPrefix> = told.chain([self.config.prefix]).collect();
        for prefix in prefixes {
            let guids: Vec<Guid> = self.matching.of(prefix).map(|(guid, _)| guid).collect();
            for guid in guids {
                self.matching.set_path(guid, path.clone(), out);
            }
        }
    }
}
