//! Vendor ids, ours and others', as the OMG and the products' sources list them.

pub use crate::wire::header::VENDOR_ID as PLAINSONG;

/// The product behind a vendor id, when it is known.
#[must_use]
pub const fn name(id: [u8; 2]) -> Option<&'static str> {
    Some(match id {
        PLAINSONG => "Plainsong",
        [0x01, 0x01] => "RTI Connext",
        [0x01, 0x02] => "OpenSplice",
        [0x01, 0x03] => "OpenDDS",
        [0x01, 0x04] => "MilDDS",
        [0x01, 0x05] => "InterCOM",
        [0x01, 0x06] => "CoreDX",
        [0x01, 0x0a] => "RTI Connext Micro",
        [0x01, 0x0f] => "Fast DDS",
        [0x01, 0x10] => "Cyclone DDS",
        [0x01, 0x11] => "GurumDDS",
        [0x01, 0x12] => "RustDDS",
        [0x01, 0x13] => "Zhenrong",
        [0x01, 0x14] => "Dust DDS",
        [0x01, 0x15] => "SafeDDS",
        [0x01, 0xaa] => "HDDS",
        _ => return None,
    })
}

/// An ACKNACK that is not final and asks a writer for a HEARTBEAT, in the forms that writers answer at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Of nothing, as the standard writes it (RTPS 2.5 §8.4.12.2.1).
    Nothing,
    /// Of nothing, with base 0.
    FromZero,
    /// Of the lowest number that did not come.
    Lowest,
}

/// The question that writers of this vendor answer at once, when it is known.
///
/// Fast DDS answers [`Question::Nothing`] when it sends its next periodic heartbeat, after 3 s by default, and
/// [`Question::FromZero`] at once. RustDDS answers neither, but repeats what is asked for after 200 ms.
#[must_use]
pub const fn question(id: [u8; 2]) -> Option<Question> {
    match id {
        PLAINSONG | [0x01, 0x10] => Some(Question::Nothing),
        [0x01, 0x0f] => Some(Question::FromZero),
        [0x01, 0x12] => Some(Question::Lowest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fact_59_vendors_are_told_apart_and_our_id_is_nobodys() {
        assert_eq!(name([0x01, 0x10]), Some("Cyclone DDS"));
        assert_eq!(name([0xff, 0xff]), None);
        let others = (0..=u16::MAX).map(u16::to_be_bytes).filter(|id| *id != PLAINSONG);
        assert!(others.filter_map(name).all(|product| product != "Plainsong"));
    }
}
