//! Vendor ids, ours and others', as the OMG and the products' sources list them.

use crate::wire::ParameterListView;
use crate::wire::octets::Reader;
use crate::wire::param::pid;

pub use crate::wire::header::VENDOR_ID as PLAINSONG;

const CYCLONE_DDS: [u8; 2] = [0x01, 0x10];
const FAST_DDS: [u8; 2] = [0x01, 0x0f];

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
/// Fast DDS answers [`Question::Nothing`] when it sends its next periodic heartbeat, after 3 s by default,
/// and [`Question::FromZero`] at once. RustDDS answers neither, but repeats what is asked for after 200 ms.
#[must_use]
pub const fn question(id: [u8; 2]) -> Option<Question> {
    match id {
        PLAINSONG | [0x01, 0x10] => Some(Question::Nothing),
        [0x01, 0x0f] => Some(Question::FromZero),
        [0x01, 0x12] => Some(Question::Lowest),
        _ => None,
    }
}

/// Whether a volatile reader of this vendor takes the first HEARTBEAT that it hears of a writer for the end
/// of what was written before it came, and never asks for that.
///
/// Readers of Cyclone DDS do. They match when they have the type, which may be long after the writer did, so
/// that HEARTBEAT may tell of what was written for them.
#[must_use]
pub const fn skips_to_heartbeat(id: [u8; 2]) -> bool {
    matches!(id, CYCLONE_DDS)
}

/// Major and minor version of a product.
pub type ProductVersion = [u8; 2];

/// Versions that break when they are told of others' types in the standard parameter (XTypes 1.3 §7.6.3.2.2):
/// the vendor, the first such version, and the first that is none again. A version that is not told is 0.0.
const BROKEN_BY_TYPES: [([u8; 2], ProductVersion, Option<ProductVersion>); 2] = [
    // With types of its own it crashes on those of others that it asks for.
    (CYCLONE_DDS, [0, 0], Some([11, 0])),
    // Types with different hashes do not match, whether one is assignable from the other or not.
    (FAST_DDS, [3, 0], None),
];

/// Whether a product may be told types in the standard parameter.
#[must_use]
pub fn reads_types(id: [u8; 2], version: ProductVersion) -> bool {
    let is_broken = |(vendor, from, until): &([u8; 2], ProductVersion, Option<ProductVersion>)| {
        *vendor == id && version >= *from && until.is_none_or(|until| version < until)
    };
    !BROKEN_BY_TYPES.iter().any(is_broken)
}

/// The version that a product tells in what it announces of a participant; 0.0 when it tells none, or not as
/// it used to.
pub(crate) fn version(id: [u8; 2], list: &ParameterListView<'_>) -> ProductVersion {
    let value = |wanted| list.parameters().find(|parameter| parameter.id == wanted).map(|it| it.value);
    let told = match id {
        FAST_DDS => value(pid::FAST_DDS_VERSION).and_then(|value| value.first_chunk().copied()),
        CYCLONE_DDS => value(pid::CYCLONE_DDS_VERSION)
            .and_then(|value| cyclone_version(&mut Reader::new(value, list.little_endian))),
        _ => None,
    };
    told.unwrap_or_default()
}

/// After five words: `host/version/system/machine`.
fn cyclone_version(value: &mut Reader<'_>) -> Option<ProductVersion> {
    let _: [u8; 20] = value.array().ok()?;
    let text = value.string(CYCLONE_TEXT_BYTES_MAX).ok()?;
    let mut numbers = text.rsplit('/').nth(2)?.split('.').map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
}

/// Octets of a host's name, a version and the names of a system.
const CYCLONE_TEXT_BYTES_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_told_to_all_but_the_versions_that_break() {
        let cases = [
            (CYCLONE_DDS, [0, 10], false),
            (CYCLONE_DDS, [11, 0], true),
            (CYCLONE_DDS, [12, 1], true),
            (FAST_DDS, [0, 0], true),
            (FAST_DDS, [3, 2], false),
            (FAST_DDS, [3, 6], false),
            (PLAINSONG, [0, 0], true),
            ([0x01, 0x01], [0, 0], true),
        ];
        for (vendor, version, told) in cases {
            assert_eq!(reads_types(vendor, version), told, "{vendor:?} {version:?}");
        }
    }

    #[test]
    fn products_tell_their_versions() {
        let read = |id, bytes: &[u8]| version(id, &ParameterListView::parse(bytes, true).unwrap().0);
        let mut fast = vec![0x00, 0x80, 4, 0, 3, 2, 2, 0];
        fast.extend([1, 0, 0, 0]);
        assert_eq!(read(FAST_DDS, &fast), [3, 2]);
        assert_eq!(read([0x01, 0x01], &fast), [0, 0], "the number is the vendor's own");
        for (text, expected) in [
            (&b"vm/0.10.2/Linux/Linux\0\0\0"[..], [0, 10]),
            (b"golden-host/11.0.1/Linux/Linux\0\0", [11, 0]),
            (b"a/b\0", [0, 0]),
        ] {
            let mut list = vec![0x07, 0x80, u8::try_from(24 + text.len()).unwrap(), 0];
            list.extend([0; 20]);
            let length = text.iter().position(|it| *it == 0).unwrap() + 1;
            list.extend(u32::try_from(length).unwrap().to_le_bytes());
            list.extend(text);
            list.extend([1, 0, 0, 0]);
            assert_eq!(read(CYCLONE_DDS, &list), expected);
        }
        assert_eq!(read(CYCLONE_DDS, &[0x07, 0x80, 4, 0, 1, 2, 3, 4, 1, 0, 0, 0]), [0, 0]);
        assert_eq!(read(CYCLONE_DDS, &[1, 0, 0, 0]), [0, 0]);
    }

    #[test]
    fn cyclone_alone_skips_to_the_first_heartbeat() {
        let skip: Vec<_> = (0..=u16::MAX)
            .map(u16::to_be_bytes)
            .filter(|id| skips_to_heartbeat(*id))
            .filter_map(name)
            .collect();
        assert_eq!(skip, ["Cyclone DDS"]);
    }

    #[test]
    fn fact_59_vendors_are_told_apart_and_our_id_is_nobodys() {
        assert_eq!(name([0x01, 0x10]), Some("Cyclone DDS"));
        assert_eq!(name([0xff, 0xff]), None);
        let others = (0..=u16::MAX).map(u16::to_be_bytes).filter(|id| *id != PLAINSONG);
        assert!(others.filter_map(name).all(|product| product != "Plainsong"));
    }
}
