//! Who votes, and who a participant is, for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plainsong_proto::discovery::{Participant, ProcessData, RemoteParticipant};
use plainsong_proto::guid::Guid;
use plainsong_proto::qos::{Property, QosSet};

/// The property by which a participant says as which of the voters it votes.
const PROPERTY: &str = "plainsong.voter";

/// One of those who agree on how epochs end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct AtomicVoter {
    /// Its name; that of its participant, with its process, where the members vote.
    pub name: String,
    /// The participant that votes under that name, if one is known.
    pub participant: Option<Guid>,
    /// It was heard a moment ago, or there is nothing that it would have to say.
    pub is_heard: bool,
}

/// Tells others as which of the voters a participant votes.
pub(crate) fn announce_voter(qos: &mut QosSet, voter: Option<&str>) {
    let property =
        |value: &str| Property { name: PROPERTY.to_owned(), value: value.to_owned(), propagate: true };
    qos.properties.retain(|it| it.name != PROPERTY);
    qos.properties.extend(voter.map(property));
}

/// The participants that vote by name.
pub(super) fn named(control: &Participant) -> Vec<(String, Guid)> {
    control.remote_participants().filter_map(|it| Some((voter_name(&it)?.to_owned(), it.guid))).collect()
}

/// As which of the voters a participant says that it votes.
pub(super) fn voter_name<'a>(participant: &RemoteParticipant<'a>) -> Option<&'a str> {
    participant.properties.iter().find(|it| it.name == PROPERTY).map(|it| it.value.as_str())
}

/// The name and the process of a participant, where they are known: `"plotter", process 12 on host "robot"`.
pub(super) fn who(control: &Participant, participant: Guid) -> String {
    let Some(known) = control.remote_participants().find(|it| it.guid == participant) else {
        return participant.to_string();
    };
    describe(participant, known.name, &ProcessData::of_properties(known.properties).to_string())
}

/// The same of what is known of it.
pub(super) fn describe(participant: Guid, name: &str, process: &str) -> String {
    match (name, process) {
        ("", "") => participant.to_string(),
        ("", process) => process.to_owned(),
        (name, "") => format!("{name:?}"),
        (name, process) => format!("{name:?}, {process}"),
    }
}

/// The participants that are known, for people.
pub(super) struct People(BTreeMap<Guid, Person>);

/// A participant.
pub(super) struct Person {
    pub(super) name: String,
    pub(super) process: String,
    pub(super) voter: Option<String>,
}

impl People {
    pub(super) fn of(control: &Participant) -> Self {
        let person = |it: RemoteParticipant<'_>| {
            let process = ProcessData::of_properties(it.properties).to_string();
            let voter = voter_name(&it).map(ToOwned::to_owned);
            (it.guid, Person { name: it.name.to_owned(), process, voter })
        };
        Self(control.remote_participants().map(person).collect())
    }

    pub(super) fn get(&self, participant: Guid) -> Option<&Person> {
        self.0.get(&participant)
    }

    /// The participants that vote under a name.
    pub(super) fn voters<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Guid> + 'a {
        self.0.iter().filter(move |(_, it)| it.voter.as_deref() == Some(name)).map(|(guid, _)| *guid)
    }
}

/// Whether a majority of them is heard.
pub(super) fn is_majority(voters: &[AtomicVoter]) -> bool {
    voters.iter().filter(|it| it.is_heard).count() * 2 > voters.len()
}

/// `no majority of the voters (heard 1 of 3: a; missing b, c)`.
pub(super) fn tally(voters: &[AtomicVoter]) -> String {
    let names = |is_heard| {
        let names: Vec<&str> =
            voters.iter().filter(|it| it.is_heard == is_heard).map(|it| it.name.as_str()).collect();
        (names.len(), names.join(", "))
    };
    let ((count, heard), (missing_count, missing)) = (names(true), names(false));
    let what = if is_majority(voters) { "the voters do not decide" } else { "no majority of the voters" };
    let mut text = format!("{what} (heard {count} of {}", voters.len());
    // Nothing goes wrong where text is appended to text.
    if count > 0 {
        let _ = write!(text, ": {heard}");
    }
    if missing_count > 0 {
        let _ = write!(text, "; missing {missing}");
    }
    text + ")"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_heard_and_who_is_missing_is_said() {
        let voters = |heard: usize| -> Vec<AtomicVoter> {
            let voter = |(place, name): (usize, &str)| AtomicVoter {
                name: name.into(),
                participant: None,
                is_heard: place < heard,
            };
            ["a", "b", "c"].into_iter().enumerate().map(voter).collect()
        };
        assert_eq!(tally(&voters(0)), "no majority of the voters (heard 0 of 3; missing a, b, c)");
        assert_eq!(tally(&voters(1)), "no majority of the voters (heard 1 of 3: a; missing b, c)");
        assert_eq!(tally(&voters(3)), "the voters do not decide (heard 3 of 3: a, b, c)");
    }
}
