//! Whatever the type: what is encoded comes back, in all versions and byte orders.

use plainsong_proto::cdr::{Decoder, Encoder, Endianness, Extensibility, XcdrVersion};
use proptest::prelude::*;

mod type_model;

use type_model::{Choices, MemberModel, TypeModel};

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_value_of_every_type_comes_back(octets in prop::collection::vec(any::<u8>(), 0..400), offset in 0..9_usize) {
        let mut choices = Choices(&octets);
        let model = TypeModel::structure(&mut choices, 4);
        let value = model.value(&mut choices);
        for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
            for endianness in [Endianness::Little, Endianness::Big] {
                let mut buffer = vec![0xaa; offset];
                model.encode(&value, &mut Encoder::new(&mut buffer, version, endianness)).expect("small values fit");
                let mut decoder = Decoder::new(&buffer[offset..], version, endianness);
                prop_assert_eq!(model.decode(&mut decoder), Ok(value.clone()), "{:?} {:?}", version, model);
                prop_assert_eq!(decoder.remaining(), 0);
            }
        }
    }

    #[test]
    fn no_value_survives_truncation_of_a_final_type(octets in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut choices = Choices(&octets);
        let model = TypeModel::Sequence(Box::new(TypeModel::choose(&mut choices, 3)));
        let member = MemberModel { id: 0, optional: false, must_understand: false, model };
        let model = TypeModel::Structure(Extensibility::Final, vec![member]);
        let value = model.value(&mut choices);
        for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
            let mut buffer = Vec::new();
            model.encode(&value, &mut Encoder::new(&mut buffer, version, Endianness::Little)).expect("small values fit");
            for length in 0..buffer.len() {
                let mut decoder = Decoder::new(&buffer[..length], version, Endianness::Little);
                prop_assert!(model.decode(&mut decoder).is_err(), "{} of {} octets", length, buffer.len());
            }
        }
    }
}
