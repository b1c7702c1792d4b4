//! Vendor ids, ours and others', as the OMG and the products' sources list them, and what each product wants
//! otherwise.

use crate::wire::ParameterListView;
use crate::wire::octets::Reader;
use crate::wire::param::pid;

pub use crate::wire::header::VENDOR_ID as PLAINSONG;

const CYCLONE_DDS: [u8; 2] = [0x01, 0x10];
const FAST_DDS: [u8; 2] = [0x01, 0x0f];
const RUST_DDS: [u8; 2] = [0x01, 0x12];
const RTI_CONNEXT: [u8; 2] = [0x01, 0x01];
const RTI_CONNEXT_MICRO: [u8; 2] = [0x01, 0x0a];

/// The product behind a vendor id, when it is known.
#[must_use]
pub const fn name(id: [u8; 2]) -> Option<&'static str> {
    Some(match id {
        PLAINSONG => "Plainsong",
        RTI_CONNEXT => "RTI Connext",
        [0x01, 0x02] => "OpenSplice",
        [0x01, 0x03] => "OpenDDS",
        [0x01, 0x04] => "MilDDS",
        [0x01, 0x05] => "InterCOM",
        [0x01, 0x06] => "CoreDX",
        RTI_CONNEXT_MICRO => "RTI Connext Micro",
        FAST_DDS => "Fast DDS",
        CYCLONE_DDS => "Cyclone DDS",
        [0x01, 0x11] => "GurumDDS",
        RUST_DDS => "RustDDS",
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

/// Major and minor version of a product.
pub type ProductVersion = [u8; 2];

/// What a product does otherwise than the standards say, or than others do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quirk {
    /// It breaks when it is told of others' types in the standard parameter (XTypes 1.3 §7.6.3.2.2).
    BreaksOnTypes,
    /// It drops endpoints that tell a type which contains itself (XTypes 1.3 §7.3.4.9.3).
    RefusesComponents,
    /// Its writers answer this question at once.
    Answers(Question),
    /// Its volatile readers take the first HEARTBEAT that they hear of a writer for the end of what was
    /// written before they came, and never ask for that.
    SkipsToHeartbeat,
    /// Its tools read the process of a participant under names of its own.
    NamesProcesses(ProcessNames),
}

impl Quirk {
    /// What the page calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BreaksOnTypes => "BreaksOnTypes",
            Self::RefusesComponents => "RefusesComponents",
            Self::Answers(Question::Nothing) => "Answers(Nothing)",
            Self::Answers(Question::FromZero) => "Answers(FromZero)",
            Self::Answers(Question::Lowest) => "Answers(Lowest)",
            Self::SkipsToHeartbeat => "SkipsToHeartbeat",
            Self::NamesProcesses(ProcessNames::FastDds) => "NamesProcesses(FastDds)",
            Self::NamesProcesses(ProcessNames::Rti) => "NamesProcesses(Rti)",
        }
    }
}

/// The names of properties that tell the process of a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessNames {
    /// Those of Fast DDS.
    FastDds,
    /// Those of RTI Connext.
    Rti,
}

/// A quirk, and the products that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The vendor id.
    pub vendor: [u8; 2],
    /// The first version that has it. A version that is not told is 0.0.
    pub from: ProductVersion,
    /// The first version that has it no more.
    pub until: Option<ProductVersion>,
    /// The switch.
    pub quirk: Quirk,
    /// What the product does.
    pub does: &'static str,
    /// What is done for it.
    pub here: &'static str,
}

const fn always(vendor: [u8; 2], quirk: Quirk, does: &'static str, here: &'static str) -> Dialect {
    Dialect { vendor, from: [0, 0], until: None, quirk, does, here }
}

const NOT_TOLD: &str =
    "It is told no types: endpoints go by names, and are refused only what nobody could read.";
const ASKED: &str = "Readers ask its writers so.";
const PROCESSES: &str = "Once one was heard, announcements tell the process under these names, too.";

/// All that is done for one product and not for others, chosen by vendor id and version. `docs/vendors.md` is
/// printed from it.
pub const DIALECTS: [Dialect; 11] = [
    Dialect {
        until: Some([11, 0]),
        ..always(
            CYCLONE_DDS,
            Quirk::BreaksOnTypes,
            "With types of its own it crashes on those of others that it asks for.",
            NOT_TOLD,
        )
    },
    Dialect {
        from: [3, 0],
        ..always(
            FAST_DDS,
            Quirk::BreaksOnTypes,
            "Types with different hashes do not match, whether one is assignable from the other or not.",
            NOT_TOLD,
        )
    },
    always(
        CYCLONE_DDS,
        Quirk::RefusesComponents,
        "It drops endpoints that tell the identifier of a type which contains itself.",
        "It is not told the types of these endpoints: they go by names.",
    ),
    always(
        PLAINSONG,
        Quirk::Answers(Question::Nothing),
        "An ACKNACK of nothing, as the standard writes it, is answered at once.",
        ASKED,
    ),
    always(
        CYCLONE_DDS,
        Quirk::Answers(Question::Nothing),
        "An ACKNACK of nothing, as the standard writes it, is answered at once.",
        ASKED,
    ),
    always(
        FAST_DDS,
        Quirk::Answers(Question::FromZero),
        "An ACKNACK of nothing is answered by the next periodic heartbeat, after 3 s; one with base 0 at once.",
        ASKED,
    ),
    always(
        RUST_DDS,
        Quirk::Answers(Question::Lowest),
        "An ACKNACK of nothing is not answered; what is asked for is repeated after 200 ms.",
        ASKED,
    ),
    always(
        CYCLONE_DDS,
        Quirk::SkipsToHeartbeat,
        "A volatile reader, which matches when it has the type, takes the first HEARTBEAT for the end of what \
         was written before it came.",
        "It gets a HEARTBEAT first that ends where it came.",
    ),
    always(
        FAST_DDS,
        Quirk::NamesProcesses(ProcessNames::FastDds),
        "Its tools read host, process and user as `fastdds.physical_data.…`.",
        PROCESSES,
    ),
    always(
        RTI_CONNEXT,
        Quirk::NamesProcesses(ProcessNames::Rti),
        "Its tools read host, process and executable as `dds.sys_info.…`.",
        PROCESSES,
    ),
    always(RTI_CONNEXT_MICRO, Quirk::NamesProcesses(ProcessNames::Rti), "As RTI Connext.", PROCESSES),
];

/// What a version of a product does otherwise.
pub fn quirks(id: [u8; 2], version: ProductVersion) -> impl Iterator<Item = Quirk> {
    let has = move |it: &&Dialect| {
        it.vendor == id && version >= it.from && it.until.is_none_or(|until| version < until)
    };
    DIALECTS.iter().filter(has).map(|it| it.quirk)
}

/// What all versions of a product do otherwise.
fn of_all_versions(id: [u8; 2]) -> impl Iterator<Item = Quirk> {
    let has = move |it: &&Dialect| it.vendor == id && it.from == [0, 0] && it.until.is_none();
    DIALECTS.iter().filter(has).map(|it| it.quirk)
}

/// The question that writers of this vendor answer at once, when it is known.
#[must_use]
pub fn question(id: [u8; 2]) -> Option<Question> {
    of_all_versions(id)
        .find_map(|quirk| if let Quirk::Answers(question) = quirk { Some(question) } else { None })
}

/// Whether volatile readers of this vendor skip to the first HEARTBEAT: [`Quirk::SkipsToHeartbeat`].
#[must_use]
pub fn skips_to_heartbeat(id: [u8; 2]) -> bool {
    of_all_versions(id).any(|quirk| quirk == Quirk::SkipsToHeartbeat)
}

/// The names under which tools of this vendor read processes, if they are its own.
#[must_use]
pub fn process_names(id: [u8; 2]) -> Option<ProcessNames> {
    of_all_versions(id)
        .find_map(|quirk| if let Quirk::NamesProcesses(names) = quirk { Some(names) } else { None })
}

/// Whether this vendor drops endpoints whose types contain themselves: [`Quirk::RefusesComponents`].
#[must_use]
pub fn refuses_components(id: [u8; 2]) -> bool {
    of_all_versions(id).any(|quirk| quirk == Quirk::RefusesComponents)
}

/// Whether a product may be told types in the standard parameter.
#[must_use]
pub fn reads_types(id: [u8; 2], version: ProductVersion) -> bool {
    !quirks(id, version).any(|quirk| quirk == Quirk::BreaksOnTypes)
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
