//! Whose acknowledgements were received.

use plainsong_proto::guid::GuidPrefix;

/// Who acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::runtime) enum AckSources {
    #[default]
    None,
    One(GuidPrefix),
    Several,
}

impl AckSources {
    pub(in crate::runtime) fn note(&mut self, source: GuidPrefix) {
        *self = self.with(Self::One(source));
    }

    /// Nobody acknowledged, or one participant.
    pub(in crate::runtime) const fn is_of_one(self) -> bool {
        !matches!(self, Self::Several)
    }

    pub(in crate::runtime) fn with(self, other: Self) -> Self {
        match (self, other) {
            (known, Self::None) | (Self::None, known) => known,
            (one, another) if one == another => one,
            _ => Self::Several,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_of_two_are_not_of_one() {
        let of = |source| AckSources::One(GuidPrefix([source; 12]));
        assert!(AckSources::None.is_of_one() && of(3).with(of(3)).with(AckSources::None).is_of_one());
        let mut acks = AckSources::None;
        acks.note(GuidPrefix([3; 12]));
        assert_eq!(acks, of(3));
        acks.note(GuidPrefix([4; 12]));
        assert!(!acks.is_of_one() && !acks.with(of(3)).is_of_one() && !of(3).with(acks).is_of_one());
    }
}
