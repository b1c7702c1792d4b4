//! Who votes in the groups of a participant: their members, or voters with names, of which it may be one.

use plainsong_proto::atomic::view::Voters;
use plainsong_proto::atomic::{GroupLimits, VoterId};
use plainsong_proto::time::Duration;

use super::name::Name;
use crate::base::config::{Config, VOTER_NAME_BYTES_MAX, is_voter_name};
use crate::error::BadParameter;

/// What the names of the types of the endpoints of groups begin with.
pub(super) const LANE: &str = "plainsong.atomic.Lane";
pub(super) const MESSAGES: &str = "plainsong.atomic.Messages";
/// Members that differ in this do not understand one another.
const FORM: u64 = 1;
/// What stands between the kind of an endpoint and the names of the voters.
const OF_VOTERS: &str = " of voters ";

/// Who votes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Voting {
    /// Their names in ascending order; none where members vote.
    names: Vec<String>,
    /// As which of them this participant votes.
    own: Option<String>,
}

impl Voting {
    /// What the settings say.
    ///
    /// # Errors
    /// They contradict each other.
    pub(crate) fn of(config: &Config) -> Result<Self, BadParameter> {
        let wrong = |reason: String| BadParameter::Voters { reason };
        let mut names = config.voters.clone();
        names.sort_unstable();
        let are_different = names.windows(2).all(|pair| pair[0] != pair[1]);
        let are_names = names.iter().all(|name| is_voter_name(name));
        if !matches!(names.len(), 0 | 1 | 3 | 5) || !are_different || !are_names {
            return Err(wrong(format!(
                "there are 1, 3 or 5 different names, each of 1 to {VOTER_NAME_BYTES_MAX} letters, digits, `-`, `_` and `.`"
            )));
        }
        let own = config.voter.clone();
        if let Some(own) = &own {
            if !names.contains(own) {
                let all = names.join(",");
                return Err(wrong(format!(
                    "this participant is to vote as '{own}', which is none of them: name it in PLAINSONG_VOTERS ({all}), or unset \
                     PLAINSONG_VOTER"
                )));
            }
            if config.state_directory.is_none() {
                return Err(wrong(format!(
                    "'{own}' has to keep its votes on a disk: set PLAINSONG_STATE_DIRECTORY"
                )));
            }
        }
        Ok(Self { names, own })
    }

    /// The voters, if they have names.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// As which of them this participant votes.
    pub(crate) fn own(&self) -> Option<&str> {
        self.own.as_deref()
    }

    /// The voters with commas between them, if they have names.
    pub(super) fn joined(&self) -> String {
        self.names.join(",")
    }

    pub(super) fn own_id(&self) -> Option<VoterId> {
        self.own().map(id_of)
    }

    pub(super) fn ids(&self) -> Vec<VoterId> {
        self.names.iter().map(|name| id_of(name)).collect()
    }

    pub(super) fn voters(&self) -> Voters {
        if self.names.is_empty() { Voters::Members } else { Voters::Fixed(self.ids()) }
    }

    /// When a member that finds no group makes one; where voters have names they do.
    pub(super) fn bootstrap_after(&self, limits: &GroupLimits) -> Option<Duration> {
        self.names.is_empty().then_some(limits.bootstrap_after)
    }

    /// Of what must be equal in all members.
    pub(super) fn digest(&self) -> u64 {
        // FNV-1a.
        let octets = self.names.iter().flat_map(|name| name.bytes().chain([0]));
        let hash = |hash: u64, octet: u8| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
        if self.names.is_empty() { FORM } else { octets.fold(0xcbf2_9ce4_8422_2325 ^ FORM, hash) }
    }

    /// The voters of endpoints whose type has such a name; empty where members vote, `None` of others.
    pub(super) fn names_in(type_name: &str, kind: &str) -> Option<String> {
        match type_name.strip_prefix(kind)? {
            "" => Some(String::new()),
            more => more.strip_prefix(OF_VOTERS).map(ToOwned::to_owned),
        }
    }

    /// The group of an endpoint with such a topic and type, if these voters vote in it.
    pub(crate) fn group_of(&self, topic: &str, type_name: &str) -> Option<u128> {
        let hash = Name::hash_in(topic)?;
        (type_name == self.type_name(MESSAGES)).then_some(hash)
    }

    /// The name of the type of endpoints of groups. Those with other voters are other groups: their endpoints
    /// do not match, and discovery explains why.
    pub(super) fn type_name(&self, kind: &str) -> String {
        let names = &self.names;
        if names.is_empty() { kind.to_owned() } else { format!("{kind}{OF_VOTERS}{}", names.join(",")) }
    }
}

/// The names of these voters of a view, with commas between them; empty where members vote.
pub(super) fn names_of(voters: &[VoterId]) -> String {
    let name = |id: &VoterId| std::str::from_utf8(&id.0).ok().map(|it| it.trim_end_matches('\0').to_owned());
    let names: Option<Vec<String>> =
        voters.iter().map(|id| name(id).filter(|it| is_voter_name(it))).collect();
    names.map_or_else(String::new, |names| names.join(","))
}

fn id_of(name: &str) -> VoterId {
    let mut id = [0; 16];
    id.iter_mut().zip(name.bytes()).for_each(|(place, octet)| *place = octet);
    VoterId(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(voters: &[&str], voter: Option<&str>, has_disk: bool) -> Result<Voting, String> {
        let config = Config {
            voters: voters.iter().map(ToString::to_string).collect(),
            voter: voter.map(ToOwned::to_owned),
            state_directory: has_disk.then(std::env::temp_dir),
            ..Config::default()
        };
        Voting::of(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn voters_are_the_same_in_any_order_and_others_are_another_group() {
        let [one, other] = [&["a", "b", "c"], &["c", "a", "b"]].map(|names| of(names, None, false).unwrap());
        assert_eq!((one.ids(), one.digest()), (other.ids(), other.digest()));
        assert_eq!(one.type_name("Lane"), "Lane of voters a,b,c");
        let others =
            [of(&["a", "b", "d"], None, false).unwrap(), of(&["ab", "c", "d"], None, false).unwrap()];
        assert!(others.iter().all(|it| it.digest() != one.digest() && it.ids() != one.ids()));
        let none = of(&[], None, false).unwrap();
        assert_eq!((none.voters(), none.digest()), (Voters::Members, FORM));
        assert_eq!(none.type_name("Lane"), "Lane");
    }

    #[test]
    fn what_contradicts_itself_is_refused_with_what_to_do() {
        assert!(of(&["a", "b"], None, false).unwrap_err().contains("1, 3 or 5"));
        assert!(of(&["a", "a", "b"], None, false).unwrap_err().contains("different"));
        assert!(of(&["a", "b", "c"], Some("d"), true).unwrap_err().contains("PLAINSONG_VOTERS"));
        assert!(of(&[], Some("a"), true).unwrap_err().contains("PLAINSONG_VOTERS"));
        assert!(of(&["a"], Some("a"), false).unwrap_err().contains("PLAINSONG_STATE_DIRECTORY"));
        assert!(of(&["a"], Some("a"), true).is_ok());
    }
}
