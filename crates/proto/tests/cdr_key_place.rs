//! Keys that are read where they are in a payload, without decoding it.

use plainsong_derive::DdsType;
use plainsong_proto::cdr::{
    DdsType, Endianness, KeyPlace, XcdrVersion, key_hash, key_hash_of_payload, to_payload,
};

/// Its key is the second number, behind an array and padding.
#[derive(Clone, Debug, Default, DdsType)]
#[dds(final, crate = "plainsong_proto")]
struct KeyInside {
    flags: [u8; 3],
    #[dds(key)]
    id: u64,
    text: String,
}

#[derive(Clone, Debug, Default, DdsType)]
#[dds(appendable, crate = "plainsong_proto")]
struct AppendableKeyInside {
    flags: [u8; 3],
    #[dds(key)]
    id: u16,
    text: String,
}

#[derive(Clone, Debug, Default, DdsType)]
#[dds(final, crate = "plainsong_proto")]
struct KeyOfTwo {
    #[dds(key)]
    a: u32,
    #[dds(key)]
    b: u32,
}

#[test]
fn a_number_in_a_fixed_place_is_the_same_key_as_when_it_is_decoded() {
    fn check<T: DdsType>(sample: &T, in_place: [bool; 2]) {
        let hash = key_hash(sample).unwrap();
        for (version, in_place) in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2].into_iter().zip(in_place) {
            for endianness in [Endianness::Little, Endianness::Big] {
                let mut whole = Vec::new();
                to_payload(sample, version, endianness, &mut whole).unwrap();
                assert_eq!(key_hash_of_payload::<T>(&whole, false), Ok(hash), "{version:?} {endianness:?}");
                // What follows the key is not looked at where the key is in its place.
                let cut = key_hash_of_payload::<T>(&whole[..whole.len() - 8], false);
                assert_eq!(cut.is_ok(), in_place, "{version:?} {endianness:?}");
                assert!(key_hash_of_payload::<T>(&whole[..6], false).is_err());
            }
        }
    }
    let text = "a text of some length".to_owned();
    check(&KeyInside { flags: [1, 2, 3], id: 0x0102_0304_0506_0708, text: text.clone() }, [true; 2]);
    check(&AppendableKeyInside { flags: [1, 2, 3], id: 0x0102, text }, [true, false]);
    assert_eq!(<KeyOfTwo as DdsType>::KEY_PLACE, KeyPlace::NONE, "of two numbers");
}

#[test]
fn the_key_hash_of_a_number_is_its_octets_with_the_most_significant_first() {
    macro_rules! check {
        ($($number:ty = $value:expr),*) => { $( {
            #[derive(DdsType)]
            #[dds(mutable, crate = "plainsong_proto")]
            struct Keyed {
                text: String,
                #[dds(key)]
                key: $number,
            }
            let value: $number = $value;
            let octets = value.to_be_bytes();
            let hash = key_hash(&Keyed { text: String::new(), key: value }).unwrap();
            assert_eq!(hash.0[..octets.len()], octets, "{}", stringify!($number));
            assert!(hash.0[octets.len()..].iter().all(|octet| *octet == 0));
        } )* };
    }
    check!(
        u8 = 0x81,
        i8 = -2,
        u16 = 0x8123,
        i16 = -3,
        u32 = 0x8123_4567,
        i32 = -4,
        u64 = 0x8123_4567_89ab_cdef,
        i64 = -5,
        f32 = -0.5,
        f64 = 1e-300
    );
    assert_eq!(
        key_hash(&KeyOfTwo { a: 1, b: 2 }).unwrap().0,
        [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0]
    );
}
