//! Participants that are heard, but answer nothing at the addresses that they announce.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use plainsong_proto::guid::Guid;
use plainsong_proto::locator::Locator;

use crate::event_router::replace;
use crate::participant::DomainParticipant;

/// A participant that is heard, but does not answer: nothing is matched with it until it does. `Display` says
/// so in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnresponsiveParticipant {
    /// Its GUID.
    pub guid: Guid,
    /// Its name; empty when it told none.
    pub name: String,
    /// Where its last announcement came from.
    pub heard_from: Option<IpAddr>,
    /// Where it says that it receives discovery traffic.
    pub announced: Vec<Locator>,
}

/// Called with the GUID of such a participant.
pub(crate) type OnUnresponsive = Arc<dyn Fn(Guid) + Send + Sync>;

impl DomainParticipant {
    /// Calls `callback` once for each participant that announces itself for three seconds, but answers
    /// nothing at the addresses that it announces: a firewall, a NAT or a container network lets datagrams
    /// through in one direction only.
    pub fn on_unresponsive(&self, callback: impl Fn(UnresponsiveParticipant) + Send + Sync + 'static) {
        let participant = Arc::downgrade(&self.inner);
        let callback: OnUnresponsive = Arc::new(move |guid| {
            let slot = participant.upgrade().and_then(|participant| participant.slot().cloned().ok());
            let told = slot.and_then(|slot| {
                slot.look(|control| {
                    let mut remotes = control.remote_participants();
                    let remote = remotes.find(|it| it.guid == guid && !it.proven)?;
                    Some(UnresponsiveParticipant {
                        guid,
                        name: remote.name.to_owned(),
                        heard_from: remote.address,
                        announced: remote.meta_unicast.to_vec(),
                    })
                })
            });
            // It may have answered meanwhile.
            if let Some(told) = told {
                callback(told);
            }
        });
        replace(&self.inner.router.on_unresponsive, callback);
    }
}

impl fmt::Display for UnresponsiveParticipant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "participant {}", self.guid)?;
        if !self.name.is_empty() {
            write!(f, " ({})", self.name)?;
        }
        match self.heard_from {
            Some(ip) => write!(f, " is heard from {ip}")?,
            None => f.write_str(" is heard")?,
        }
        f.write_str(", but does not answer at")?;
        for (index, locator) in self.announced.iter().enumerate() {
            write!(f, "{} {locator}", if index == 0 { "" } else { "," })?;
        }
        if self.announced.is_empty() {
            f.write_str(" all: it announces no address")?;
        }
        f.write_str("; let datagrams through to it, or let it announce an address at which it can be reached")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_described_in_a_sentence() {
        let told = UnresponsiveParticipant {
            guid: Guid::default(),
            name: "radar".into(),
            heard_from: Some([10, 0, 0, 9].into()),
            announced: vec![Locator::udp([10, 0, 0, 9].into(), 7410)],
        };
        let text = told.to_string();
        assert!(
            text.contains("(radar) is heard from 10.0.0.9, but does not answer at udp/10.0.0.9:7410;"),
            "{text}"
        );
    }
}
