//! Which group: a topic in a partition.

/// What the topic of the endpoints of a group begins with.
const ENDPOINTS: &str = "plainsong.atomic/";

/// Which group: all its members have the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    /// As its members call it.
    pub(crate) topic: String,
    pub(crate) partition: String,
    /// Of both: others know the group by it.
    hash: u128,
}

impl Name {
    pub(crate) fn new(topic: &str, partition: &str) -> Self {
        // FNV-1a: names of topics may be as long as a name may be at all.
        const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let octets = topic.bytes().chain([0]).chain(partition.bytes());
        let hash = octets.fold(BASIS, |hash, octet| (hash ^ u128::from(octet)).wrapping_mul(PRIME));
        Self { topic: topic.to_owned(), partition: partition.to_owned(), hash }
    }

    /// The group of endpoints that have such a topic, of which nothing else is known.
    pub(crate) fn of_hash(hash: u128) -> Self {
        Self { topic: format!("{ENDPOINTS}{hash:032x}"), partition: String::new(), hash }
    }

    /// The group of endpoints with this topic.
    pub(super) fn hash_in(topic: &str) -> Option<u128> {
        let digits = topic.strip_prefix(ENDPOINTS)?;
        let is_hash = digits.len() == 32 && digits.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        u128::from_str_radix(digits, 16).ok().filter(|_| is_hash)
    }

    /// Whether its topic and partition are known, and not only their hash.
    pub(super) fn is_known(&self) -> bool {
        Self::new(&self.topic, &self.partition).hash == self.hash
    }

    /// What stands for both in names of files and endpoints.
    pub(crate) const fn hash(&self) -> u128 {
        self.hash
    }

    /// The topic of the endpoints of the group.
    pub(super) fn of_endpoints(&self) -> String {
        format!("{ENDPOINTS}{:032x}", self.hash)
    }
}
