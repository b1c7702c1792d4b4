//! The Rust that is written for `golden/types.idl` compiles, and its values survive encoding.

// The derive names its library by an absolute path: here this file stands for it.
extern crate self as plainsong;

/// What the derive uses.
pub mod __private {
    pub use plainsong_proto::{cdr, malformed, types};
}

/// The derive.
pub mod types {
    pub use plainsong_derive::DdsType;
}

/// Types of members.
pub mod cdr {
    pub use plainsong_proto::cdr::{Float128, WChar, WString};
}

#[allow(missing_docs, dead_code, unreachable_pub)]
mod generated {
    include!("golden/types.rust");
}

use std::fmt::Debug;

use generated::plant::{
    Alarms, Bigs, ByFlag, ByLetter, Car, Choice, Command, Device, Exact, Flags, Keyed, Keywords, Left, Node,
    Point, Pump, PumpState, Reading, Right, Tree, Value, parts,
};
use plainsong_proto::cdr::{DdsType, Endianness, XcdrVersion, from_payload, to_payload};
use plainsong_proto::filter::Filter;

#[track_caller]
fn assert_survives<T: DdsType + PartialEq + Debug>(value: &T) {
    for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
        let mut payload = Vec::new();
        to_payload(value, version, Endianness::Little, &mut payload).expect("it can be encoded");
        assert_eq!(&from_payload::<T>(&payload).expect("it can be decoded"), value, "{version:?}");
    }
}

#[test]
fn generated_types_survive_encoding() {
    let pump = Pump {
        device: Device { name: "north".to_owned(), serial: 1 },
        alarms: Alarms::LEAK | Alarms::HOT,
        speed: -4,
        state: PumpState::Broken,
        path: vec![Point { x: 1.5, y: -2.0 }],
        block: [7; 40],
        counters: [("starts".to_owned(), 3)].into(),
        place: Box::new(Point { x: 3.0, y: 4.0 }),
        reading: parts::Reading {
            value: 1,
            inner: vec![parts::Reading::default()],
            at: Some(Point::default()),
        },
        names: vec!["a".to_owned(), "b".to_owned()],
        ..Pump::default()
    };
    assert_survives(&pump);
    assert_survives(&Device { name: "south".to_owned(), serial: 9 });
    assert_survives(&Reading { sensor_id: 3, pressure: 1.25, remark: Some("ok".to_owned()), r#type: true });
    assert_survives(&Command::Target(Point { x: 0.5, y: 1.0 }));
    assert_survives(&Value::List(vec![Value::Whole(3), Value::Text("ten".to_owned())]));
    assert_survives(&Choice::Reading(Box::default()));
    let last = Node { id: 2, ..Node::default() };
    assert_survives(&Node { id: 1, children: vec![last.clone()], next: Some(Box::new(last)), choice: None });
    assert_survives(&Left { rights: vec![Box::new(Right { left: Some(Box::default()) })] });
    assert_survives(&Keyed { id: 5 });
    assert_survives(&Tree { pair: Some(Box::new([Tree::default(), Tree::default()])) });
    assert_survives(&Bigs { all: [[1; 300], [2; 300]], one: None });
    assert_survives(&ByLetter::Omega(3));
    assert_survives(&ByLetter::Other(0));
    assert_survives(&ByFlag::Hot("x".to_owned()));
    let flags = Flags { level: 7, count: -512 };
    let exact = Exact {
        long_one: 0.5.into(),
        flags,
        codes: vec![["abcd".to_owned(), String::new(), "é".to_owned()]],
    };
    assert_survives(&exact);
    assert_survives(&Car { wheels: 3, exact, ..Car::default() });
    assert_survives(&Keywords { r#fn: 1, r#struct: 2, self_: 3, foo_bar: 4 });
}

#[test]
fn defaults_and_names_are_those_of_the_idl() {
    let pump = Pump::default();
    assert_eq!(
        (pump.speed, pump.side.as_str(), pump.before, pump.state),
        (20, "left", PumpState::PumpOff, PumpState::PumpOn)
    );
    assert_eq!(<Pump as DdsType>::TYPE_NAME, "plant::Pump");
    assert_eq!(generated::plant::MAX_NAME, 32);
    assert_eq!(generated::plant::GREETING, "good day\n");
    assert_eq!(Alarms::LEAK.bits(), 16);
    let long = Device { name: "x".repeat(33), serial: 0 };
    let refused = to_payload(&long, XcdrVersion::Xcdr2, Endianness::Little, &mut Vec::new());
    assert!(refused.is_err(), "the bound of an alias counts");
}

#[test]
fn peers_know_members_and_literals_by_the_names_of_the_idl() {
    let reading = Reading { sensor_id: 3, ..Reading::default() };
    let filter = Filter::<Reading>::query("sensorId = 3", &[]).expect("the member has this name");
    assert!(filter.passes(&reading));
    assert!(Filter::<Reading>::query("sensor_id = 3", &[]).is_err());
    let filter = Filter::<Pump>::query("state = 'PUMP_ON'", &[]).expect("the literal has this name");
    assert!(filter.passes(&Pump::default()));
}
