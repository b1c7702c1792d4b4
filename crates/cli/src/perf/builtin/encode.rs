//! What serialization costs: types that applications have. Their IDL is `PerfNumbers` and so on in
//! `perf/adapters/encode.idl`.

use std::hint::black_box;

use plainsong::cdr::{Endianness, from_payload, to_payload};
use plainsong::prelude::*;
use plainsong_perfkit::Failure;
use plainsong_perfkit::adapter::EncodeCost;
use plainsong_perfkit::clock::now_ns;

#[derive(Clone, Copy, DdsType)]
#[dds(name = "PerfNumbers", final)]
#[repr(C)]
struct PerfNumbers {
    values: [f64; 40],
}

#[derive(Clone, Default, DdsType)]
#[dds(name = "PerfText", final)]
struct PerfText {
    words: [String; 8],
}

#[derive(Clone, Copy, Default, DdsType)]
#[dds(name = "PerfPoint", final)]
#[repr(C)]
struct PerfPoint {
    x: f64,
    y: f64,
    z: f64,
}

#[derive(Clone, Copy, Default, DdsType)]
#[dds(name = "PerfRotation", final)]
#[repr(C)]
struct PerfRotation {
    x: f64,
    y: f64,
    z: f64,
    w: f64,
}

#[derive(Clone, Copy, DdsType)]
#[dds(name = "PerfPose", final)]
#[repr(C)]
struct PerfPose {
    position: PerfPoint,
    orientation: PerfRotation,
    covariance: [f64; 36],
    seconds: i32,
    nanoseconds: u32,
}

#[derive(Clone, Default, DdsType)]
#[dds(name = "PerfImage", final)]
struct PerfImage {
    width: u32,
    height: u32,
    encoding: String,
    data: Vec<u8>,
}

#[derive(Clone, Default, DdsType)]
#[dds(name = "PerfTrackPoint", final)]
struct PerfTrackPoint {
    position: PerfPoint,
    speed: f32,
    quality: u8,
    label: String,
}

#[derive(Clone, Default, DdsType)]
#[dds(name = "PerfTrack", final)]
struct PerfTrack {
    #[dds(key)]
    id: u32,
    points: Vec<PerfTrackPoint>,
}

/// Encodes and decodes the type of that name.
pub(super) fn cost(type_name: &str, rounds: u64) -> Result<EncodeCost, Failure> {
    let word = || "twelve chars".to_owned();
    match type_name {
        "numbers" => measure(&PerfNumbers { values: [0.5; 40] }, rounds),
        "text" => measure(&PerfText { words: std::array::from_fn(|_| word()) }, rounds),
        "pose" => {
            let (position, orientation) = (PerfPoint::default(), PerfRotation::default());
            let pose = PerfPose { position, orientation, covariance: [0.25; 36], seconds: 1, nanoseconds: 2 };
            measure(&pose, rounds)
        }
        "image" => {
            let data = vec![7; 1 << 16];
            measure(&PerfImage { width: 256, height: 256, encoding: "mono8".to_owned(), data }, rounds)
        }
        "track" => {
            let point = PerfTrackPoint { speed: 1.5, quality: 9, label: word(), ..PerfTrackPoint::default() };
            measure(&PerfTrack { id: 1, points: vec![point; 50] }, rounds)
        }
        other => Err(Failure::Unsupported(format!(
            "there is no type {other}: take numbers, text, pose, image or track"
        ))),
    }
}

fn measure<T: DdsType>(sample: &T, rounds: u64) -> Result<EncodeCost, Failure> {
    let failed = |error: String| Failure::Failed(error);
    let rounds = rounds.max(1);
    let mut buffer = Vec::new();
    let begin_ns = now_ns();
    for _ in 0..rounds {
        buffer.clear();
        to_payload(black_box(sample), XcdrVersion::Xcdr1, Endianness::Little, &mut buffer)
            .map_err(|error| failed(error.to_string()))?;
        black_box(&buffer);
    }
    let encoded_ns = now_ns();
    for _ in 0..rounds {
        let sample: T = from_payload(black_box(&buffer)).map_err(|error| failed(error.to_string()))?;
        black_box(&sample);
    }
    let decoded_ns = now_ns();
    let each = |from_ns: u64, to_ns: u64| to_ns.saturating_sub(from_ns) as f64 / rounds as f64;
    Ok(EncodeCost {
        encode_ns: each(begin_ns, encoded_ns),
        decode_ns: each(encoded_ns, decoded_ns),
        encoded_octets: buffer.len() as u64,
    })
}
