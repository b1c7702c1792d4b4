//! One datagram for all readers of this host, or one for each: which is chosen, and why.
//!
//! The readers of a topic may hear a group of their host (`locator::ports::host_group`), and say so when they
//! are announced. What a writer has for such a reader goes to the group, also what is for it alone: on the
//! way of another socket it would overtake what went to all, and ask for what is on its way. A reader that
//! falls silent, or that repetitions do not reach, is written to by unicast for a while. It is chosen where
//! it costs less: for long datagrams to some processes, and for any to many. It begins when it overtakes
//! nothing (`switch.rs`).

use crate::estimate::SmoothedEstimate;
use crate::guid::Guid;
use crate::locator::Locator;
use crate::outbox::Outbox;
use crate::time::{Duration, Instant, Now};

use super::proxies::Proxies;
use super::proxy::ReaderProxy;
use super::switch::Switches;
use crate::tuning::writer::{GROUP_SILENCE_EACH, GROUP_SILENCE_MAX, MULTICAST_ANY_LENGTH_PROCESSES};
use crate::writer::Writer;
use crate::writer::flow::route_kind::RouteKind;

/// How samples go to the readers of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// A datagram for each reader's participant.
    Unicast(UnicastReason),
    /// One datagram for so many readers, by a group that does not leave the host; others are sent theirs.
    Multicast {
        /// The group and its port.
        group: Locator,
        /// Readers that hear it.
        readers: usize,
    },
}

/// Why samples go by unicast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnicastReason {
    /// Too few processes of this host may hear a group: nothing would be saved.
    FewReaders,
    /// Datagrams are usually so short that sharing them among few processes saves little, while readers that
    /// wait would be woken twice.
    ShortDatagrams,
    /// Too few of them have what was before their time, or answer what goes to it.
    NotHeard,
    /// Readers were slow to acknowledge what went by unicast, which multicast would overtake: it is tried
    /// again later.
    NotAcknowledged,
    /// A content filter decides for each reader what it is sent.
    ContentFilter,
    /// A TRANSPORT_PRIORITY has samples go where discovery is heard.
    TransportPriority,
}

impl std::fmt::Display for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unicast(reason) => write!(f, "unicast: {reason}"),
            Self::Multicast { group, readers } => {
                write!(f, "multicast to {group}, one datagram for {readers} readers of this host")
            }
        }
    }
}

impl std::fmt::Display for UnicastReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::FewReaders => {
                "fewer than three processes of this host have reliable readers that may hear a group"
            }
            Self::ShortDatagrams => {
                "datagrams are so short that sharing them among few processes saves little"
            }
            Self::NotHeard => {
                "fewer than three of these processes have the history or answer what goes to the group"
            }
            Self::NotAcknowledged => {
                "readers were slow to acknowledge what multicast would overtake; it is tried again later"
            }
            Self::ContentFilter => "content filters decide for each reader what it is sent",
            Self::TransportPriority => "a TRANSPORT_PRIORITY has samples go where discovery is heard",
        })
    }
}

/// What a writer knows of its own flow, as far as the choice depends on it.
#[derive(Debug, Default)]
pub(crate) struct Multicast {
    /// Usual octets of a datagram for all readers.
    datagram_bytes: SmoothedEstimate<8>,
    is_long: bool,
    pub(crate) switches: Switches,
    /// When readers that owe answers are looked at.
    due: Option<Instant>,
}

impl Multicast {
    /// A datagram for all readers of this host was composed, or will be.
    pub(crate) const fn sent(&mut self, bytes: usize) {
        self.datagram_bytes.add(bytes as i64);
    }

    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Somebody owes an acknowledgement, or nobody does any more.
    pub(crate) fn watch(&mut self, now: Instant, owing: bool) {
        match (owing, self.due) {
            (false, _) => self.due = None,
            (true, None) => self.due = now.after(GROUP_SILENCE_EACH),
            (true, Some(_)) => {}
        }
    }

    /// Looks whether datagrams are long enough, which does not change with each of them.
    fn evaluate(&mut self, bytes_min: usize) {
        let least = if self.is_long { bytes_min / 2 } else { bytes_min };
        self.is_long = self.datagram_bytes.get() as usize >= least;
    }
}

impl ReaderProxy {
    /// It may hear a group, and says what it has.
    pub(crate) fn may_hear(&self) -> bool {
        self.reliable && self.kind == RouteKind::SameHost && self.group.is_some()
    }

    /// It hears the group and has what was written before its time: the history for it alone goes to nobody
    /// else.
    pub(crate) fn hears(&self) -> bool {
        self.may_hear() && self.hearing.pause_end.is_none() && self.acknowledged >= self.joined_at
    }
}

impl Proxies {
    /// Processes of this host with readers of that kind.
    fn processes(&self, which: impl Fn(&ReaderProxy) -> bool) -> usize {
        let mut places: Vec<_> = self.readers.iter().filter(|it| which(it)).map(|it| &it.locators).collect();
        places.sort_unstable();
        places.dedup();
        places.len()
    }

    /// Counts anew who may hear the group, and who is written to by it.
    pub(crate) fn count_near(&mut self) {
        self.may_hear = self.processes(ReaderProxy::may_hear);
        self.use_group = self.readers.iter().any(|reader| reader.by_group);
    }

    /// Whether so many may hear the group that it saves with datagrams of any length.
    const fn are_many(&self) -> bool {
        self.may_hear >= MULTICAST_ANY_LENGTH_PROCESSES
    }

    /// Who is to be written to by the group, if anybody, is not, or the other way round.
    pub(crate) fn differs_from(&self, multicast: bool) -> bool {
        if !multicast {
            return self.use_group;
        }
        self.readers.iter().any(|reader| reader.by_group != reader.hears())
    }
}

impl Writer {
    /// How samples go to the readers of this host, and why.
    #[must_use]
    pub fn delivery(&self) -> Delivery {
        let hearing = || self.proxies.iter().filter(|reader| reader.hears());
        let group = hearing().next().and_then(|reader| reader.group);
        match (self.obstacle(), group) {
            (Some(reason), _) => Delivery::Unicast(reason),
            (None, Some(group)) if self.proxies.use_group || !self.multicast.switches.are_vain() => {
                Delivery::Multicast { group, readers: hearing().count() }
            }
            (None, _) => Delivery::Unicast(UnicastReason::NotAcknowledged),
        }
    }

    /// Why samples are to go by unicast; `None`: they need not. The rule is this, with
    /// [`crate::writer::WriterLimits::multicast_bytes_min`] and
    /// [`crate::writer::WriterLimits::multicast_processes_min`].
    fn obstacle(&self) -> Option<UnicastReason> {
        if self.traffic_class() > 0 {
            Some(UnicastReason::TransportPriority)
        } else if self.proxies.is_filtering() {
            Some(UnicastReason::ContentFilter)
        } else if self.proxies.may_hear < self.config.limits.multicast_processes_min {
            Some(UnicastReason::FewReaders)
        } else if self.proxies.processes(ReaderProxy::hears) < self.config.limits.multicast_processes_min {
            Some(UnicastReason::NotHeard)
        } else if !self.multicast.is_long && !self.proxies.are_many() {
            Some(UnicastReason::ShortDatagrams)
        } else {
            None
        }
    }

    /// Chooses anew, and has the way change.
    pub(crate) fn choose_delivery(&mut self, now: Now, out: &mut Outbox) {
        self.multicast.evaluate(self.config.limits.multicast_bytes_min);
        let enough = self.proxies.may_hear >= self.config.limits.multicast_processes_min;
        let wanted = enough && (self.multicast.is_long || self.proxies.are_many());
        // Nearly always: each acknowledgement comes by here.
        if !self.proxies.differs_from(wanted) {
            self.end_switch(now, out);
            return;
        }
        let obstacle = self.obstacle();
        if self.proxies.differs_from(obstacle.is_none()) {
            // That datagrams became short is no reason to overtake.
            let must_leave = obstacle.is_some_and(|reason| reason != UnicastReason::ShortDatagrams);
            self.switch(now, obstacle.is_none(), must_leave, out);
        } else {
            self.end_switch(now, out);
        }
    }

    /// A reader answered: after progress or missing nothing, or neither.
    pub(crate) fn note_answer(&mut self, now: Now, reader: Guid, progressed: bool, out: &mut Outbox) {
        if let Some(proxy) = self.proxies.get_mut(reader).filter(|proxy| proxy.may_hear()) {
            proxy.hearing.speaks();
            proxy.hearing.answers(now.mono);
            if proxy.hearing.is_stuck(progressed) && proxy.by_group {
                proxy.hearing.lost(now.mono);
            }
        }
        self.choose_delivery(now, out);
    }

    /// Looks whether readers that are written to by the group still answer.
    pub(crate) fn look_for_silence(&mut self, now: Now, out: &mut Outbox) {
        self.multicast.due = None;
        let mut lost = false;
        let last = self.history.last();
        let readers = i64::try_from(self.routes.reliable()).unwrap_or(i64::MAX);
        let silence = Duration(GROUP_SILENCE_EACH.0.saturating_mul(readers)).min(GROUP_SILENCE_MAX);
        for reader in self.proxies.readers.iter_mut().filter(|it| it.by_group && it.acknowledged < last) {
            if reader.hearing.is_silent(now.mono, silence) {
                reader.hearing.lost(now.mono);
                lost = true;
            }
        }
        if lost {
            self.choose_delivery(now, out);
            self.ask(now, out);
        }
        let owing = self.proxies.acknowledged().is_some_and(|lowest| lowest < last);
        self.multicast.watch(now.mono, owing && self.proxies.use_group);
    }
}
