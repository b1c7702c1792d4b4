//! Recordings for tests.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "tests; each file uses its own part")]

use std::path::PathBuf;
use std::sync::Arc;

use plainsong_derive::DdsType;
use plainsong_proto::guid::Guid;
use plainsong_proto::qos::{Durability, QosSet};
use plainsong_proto::types::TypeDescription;
use plainsong_recording::{Event, EventKind, Output, RecordedWriter};

#[derive(DdsType, Default)]
#[dds(name = "std_msgs::msg::dds_::Header_", crate = "plainsong_proto")]
pub struct Header {
    #[dds(name = "frame_id_")]
    frame_id: String,
}

#[derive(DdsType, Default)]
#[dds(name = "demo::msg::dds_::Reading_", crate = "plainsong_proto")]
pub struct Reading {
    #[dds(name = "header_")]
    header: Header,
    #[dds(name = "values_")]
    values: Vec<f64>,
    #[dds(name = "matrix_")]
    matrix: [f32; 9],
    #[dds(name = "name_", bound = 20)]
    name: String,
    #[dds(name = "raw_")]
    raw: Vec<u8>,
}

#[derive(DdsType, Default)]
#[dds(crate = "plainsong_proto")]
pub struct Light {
    #[dds(key)]
    id: u32,
    level: Option<u16>,
}

pub fn guid(number: u8) -> Guid {
    Guid::from_bytes([number, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 1, 2])
}

pub fn writers() -> [RecordedWriter; 3] {
    let ty = |description: Option<TypeDescription>| Some(Arc::new(description.unwrap()));
    let light = RecordedWriter {
        topic: "Lights".to_owned(),
        type_name: "Light".to_owned(),
        guid: guid(1),
        keyed: true,
        qos: QosSet {
            partition: vec!["one".to_owned(), "t*o".to_owned()],
            user_data: vec![0, 255, 7],
            ..QosSet::writer().durability(Durability::TransientLocal)
        },
        ty: ty(TypeDescription::of::<Light>()),
    };
    let reading = RecordedWriter {
        topic: "rt/reading".to_owned(),
        type_name: "demo::msg::dds_::Reading_".to_owned(),
        guid: guid(2),
        keyed: false,
        qos: QosSet::writer(),
        ty: ty(TypeDescription::of::<Reading>()),
    };
    let unknown = RecordedWriter {
        topic: "Untold".to_owned(),
        type_name: "Secret".to_owned(),
        guid: guid(3),
        keyed: false,
        qos: QosSet::default(),
        ty: None,
    };
    [light, reading, unknown]
}

pub fn event(kind: EventKind) -> Event {
    let key = if kind == EventKind::Departure { Vec::new() } else { vec![0, 1, 0, 0, 9, 0, 0, 0] };
    Event { topic: "Lights".to_owned(), writer: guid(1), kind, key, key_hash: Vec::new() }
}

/// A file in a place of its own, which goes with this.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new(test: &str) -> Self {
        let name = format!("plainsong-recording-{test}-{}.mcap", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// So many samples, of all writers in turn, an ending after each ten; each commit is shown to `committed`
/// with the changes before it.
pub fn record(place: &Place, samples: u32, mut committed: impl FnMut(&[u8], u32)) -> Vec<u8> {
    let mut output = Output::create(&place.0, true).unwrap();
    let channels = writers().map(|writer| output.add_writer(&writer).unwrap().0);
    let mut changes = 0;
    for number in 0..samples {
        let time = u64::from(number) * 1_000_000;
        let payload = [&[0, 1, 0, 0][..], &number.to_le_bytes()].concat();
        output.sample(channels[number as usize % 3], number, (time, time / 2), &payload).unwrap();
        changes += 1;
        if number % 10 == 9 {
            output.event(&event(EventKind::Dispose), (time, time)).unwrap();
            changes += 1;
            output.commit().unwrap();
            committed(&std::fs::read(&place.0).unwrap(), changes);
        }
    }
    output.finish().unwrap();
    std::fs::read(&place.0).unwrap()
}
