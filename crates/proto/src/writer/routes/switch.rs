//! How the way to the readers of this host changes in a flow: what goes the new way overtakes nothing.
//!
//! Each way has a socket of its own at a reader, and a thread that empties it. Were the way changed while
//! samples wait in the old socket, those that follow would overtake them: the reader would see holes, ask,
//! and be sent again what it has. So the way of a reader changes when it has acknowledged everything it was
//! sent. In a flow that would hardly ever happen by itself, so the writer switches: it asks, and what is new
//! waits until then, as it would for a burst. What was begun is sent to its end before.

use crate::backoff::Backoff;
use crate::guid::Guid;
use crate::outbox::Outbox;
use crate::qos::HistoryKind;
use crate::time::{Instant, Now};

use super::proxy::ReaderProxy;
use crate::tuning::writer::{
    SWITCH_PAUSE, SWITCH_PAUSE_DOUBLINGS, SWITCH_WAIT_MAX, SWITCH_WAIT_REPLACING_MAX,
};
use crate::writer::Writer;
use crate::writer::flow::route_kind::RouteKind;

/// Switches that were given up since the last that was not.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    vain: u32,
    /// When there may be another.
    again: Option<Instant>,
}

impl Switches {
    /// The last one was given up, and the way did not change since.
    pub(crate) const fn are_vain(&self) -> bool {
        self.vain > 0
    }

    /// Whether there is to be none now.
    fn pause(&self, now: Instant) -> bool {
        self.again.is_some_and(|again| now < again)
    }

    fn given_up(&mut self, now: Instant) {
        self.again = now.after(Backoff::doubling(SWITCH_PAUSE, SWITCH_PAUSE_DOUBLINGS).pause(self.vain));
        self.vain = self.vain.saturating_add(1);
    }
}

impl Writer {
    /// Somebody is to be written to by the group and is not, or the other way round: sees to it, at once
    /// where nothing can be overtaken, and where it must be: all are to leave the group, or one does not hear
    /// it any more.
    ///
    /// What waits for others leaves before, as it was addressed.
    pub(crate) fn switch(&mut self, now: Now, by_group: bool, must_leave: bool, out: &mut Outbox) {
        let must = |reader: &ReaderProxy| reader.by_group && (must_leave || !reader.hears());
        let is_switching = self.is_switching();
        let waits = is_switching || self.multicast.switches.pause(now.mono);
        if waits && !self.proxies.iter().any(must) && !self.nothing_is_overtaken(by_group) {
            return;
        }
        self.flush(now, out);
        let all_may = self.nothing_is_overtaken(by_group);
        for reader in self.proxies.readers.iter_mut().filter(|reader| all_may || must(reader)) {
            reader.by_group = by_group && reader.hears();
        }
        self.proxies.rebuild(&mut self.routes);
        if all_may {
            self.multicast.switches = Switches::default();
        }
        if !self.proxies.differs_from(by_group) {
            self.end_switch(now, out);
        } else if !waits {
            // Of samples that wait KEEP_LAST has later ones replace some, which would have been sent.
            let replaces = self.config.qos.history.kind == HistoryKind::KeepLast;
            let wait = if replaces { SWITCH_WAIT_REPLACING_MAX } else { SWITCH_WAIT_MAX };
            self.switch_until(now.mono.after(wait));
            self.ask(now, out);
        }
    }

    /// Whether those whose way is to change have acknowledged everything they were sent. What is still to be
    /// sent does not count, but for the rest of a sample.
    fn nothing_is_overtaken(&self, by_group: bool) -> bool {
        let last = self.sent_last(RouteKind::SameHost);
        let is_inside =
            self.routes.of(RouteKind::SameHost).queue.unsent().is_some_and(|(_, fragments)| fragments > 0);
        let has_all = |it: &ReaderProxy| it.by_group == (by_group && it.hears()) || it.acknowledged >= last;
        !is_inside && !self.holds() && self.proxies.iter().all(has_all)
    }

    /// Whether a switch may have been given up for want of an acknowledgement of this reader: as soon as it
    /// is gone, another has better prospects.
    pub(crate) fn holds_up_switches(&self, reader: Guid) -> bool {
        let reader = self.proxies.get(reader).filter(|it| it.may_hear());
        reader.is_some_and(|it| it.acknowledged < self.sent_last(RouteKind::SameHost))
    }

    /// The way has changed, or is not to any more: what waited for that follows.
    pub(crate) fn end_switch(&mut self, now: Now, out: &mut Outbox) {
        if self.is_switching() {
            self.switch_until(None);
            self.pump(now, out);
        }
    }

    /// Whether new changes wait until readers on this host have acknowledged those before, so that the way to
    /// them can change.
    #[must_use]
    pub const fn waits_for_switch(&self) -> bool {
        self.is_switching()
    }

    pub(crate) const fn is_switching(&self) -> bool {
        self.switch_end().is_some()
    }

    const fn switch_end(&self) -> Option<Instant> {
        self.routes.of(RouteKind::SameHost).queue.pause_end
    }

    const fn switch_until(&mut self, end: Option<Instant>) {
        self.routes.of_mut(RouteKind::SameHost).queue.pause_end = end;
    }

    /// Readers that do not acknowledge are not waited for any longer: the way stays as it was, and what
    /// waited may follow.
    pub(crate) fn give_up_switch(&mut self, now: Now) {
        if self.switch_end().is_some_and(|end| end <= now.mono) {
            self.switch_until(None);
            self.multicast.switches.given_up(now.mono);
        }
    }
}
