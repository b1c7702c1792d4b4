//! Types as others are told them: octet by octet what Cyclone DDS tells of the same IDL.

use plainsong_derive::DdsType;
use plainsong_proto::types::{TypeDescription, TypeHash, TypeInformation};

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", final)]
struct Position {
    x: f64,
    y: f32,
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto")]
enum Mode {
    #[dds(default)]
    Off = 0,
    On = 1,
    Broken = 7,
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", mutable)]
struct Device {
    #[dds(key)]
    serial: u64,
    position: Position,
    #[dds(bound = 10)]
    track: Vec<Position>,
    corners: [Position; 4],
    matrix: [[i16; 3]; 2],
    mode: Mode,
    note: Option<String>,
    #[dds(bound = 1000)]
    big: Vec<i32>,
    flag: bool,
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", name = "ShapeType")]
struct Shape {
    #[dds(key, bound = 128)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
    additional_payload_size: Vec<u8>,
}

#[test]
fn t() {
    for d in
        [TypeDescription::of::<Position>(), TypeDescription::of::<Shape>(), TypeDescription::of::<Device>()]
    {
        let d = d.unwrap();
        let hex = |o: &[u8]| o.iter().map(|x| format!("{x:02x}")).collect::<String>();
        println!("TI {}", hex(&d.information.encode()));
        for (h, o) in &d.objects {
            println!("{} {} {}", h.complete, hex(&h.octets), hex(o));
        }
    }
}
