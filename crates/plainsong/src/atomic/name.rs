//! Which group: a topic in a partition.

/// Which group: all its members have the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) topic: String,
    pub(crate) partition: String,
}

impl Name {
    /// The topic of the endpoints of the group.
    pub(super) fn of_endpoints(&self) -> String {
        // FNV-1a: names of topics may be as long as a name may be at all.
        const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let octets = self.topic.bytes().chain([0]).chain(self.partition.bytes());
        let hash = octets.fold(BASIS, |hash, octet| (hash ^ u128::from(octet)).wrapping_mul(PRIME));
        format!("plainsong.atomic/{hash:032x}")
    }
}
