//! Chunks that other recorders compressed.

use std::io::Read;

use lz4_flex::frame::FrameDecoder;
use ruzstd::decoding::StreamingDecoder;

use crate::limits::RECORD_BYTES_MAX;

/// The octets of a chunk that has so many; else what is wrong with it.
pub(crate) fn inflate(compression: &str, data: &[u8], bytes: u64) -> Result<Vec<u8>, String> {
    if bytes > RECORD_BYTES_MAX as u64 {
        return Err(format!("a chunk has {bytes} octets, and {RECORD_BYTES_MAX} are read"));
    }
    let wrong = |error: &dyn std::fmt::Display| format!("a chunk is damaged: {error}");
    let mut octets = Vec::new();
    // One more than it should have shows that it has too many; what it claims takes no memory.
    let most = bytes + 1;
    let read = match compression {
        "lz4" => FrameDecoder::new(data).take(most).read_to_end(&mut octets),
        "zstd" => {
            let decoder = StreamingDecoder::new(data).map_err(|error| wrong(&error))?;
            decoder.take(most).read_to_end(&mut octets)
        }
        other => {
            let other = other.escape_debug();
            return Err(format!("a chunk is compressed by '{other}', which is not read"));
        }
    };
    read.map_err(|error| wrong(&error))?;
    if octets.len() as u64 != bytes {
        return Err(format!("a chunk is damaged: it does not have the {bytes} octets that it tells"));
    }
    Ok(octets)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use lz4_flex::frame::FrameEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn compressed(octets: &[u8]) -> [(&'static str, Vec<u8>); 2] {
        let mut lz4 = FrameEncoder::new(Vec::new());
        lz4.write_all(octets).unwrap();
        [("lz4", lz4.finish().unwrap()), ("zstd", compress_to_vec(octets, CompressionLevel::Fastest))]
    }

    #[test]
    fn chunks_are_inflated_and_checked_against_what_they_tell() {
        let octets: Vec<u8> = (0..200_000_u32).flat_map(|it| (it / 7).to_le_bytes()).collect();
        let bytes = octets.len() as u64;
        for (compression, data) in compressed(&octets) {
            assert!(data.len() < octets.len(), "{compression}");
            assert_eq!(inflate(compression, &data, bytes).as_ref(), Ok(&octets), "{compression}");
            for wrong in [0, bytes - 1, bytes + 1] {
                let why = inflate(compression, &data, wrong).unwrap_err();
                assert!(why.contains(&format!("does not have the {wrong} octets")), "{compression}: {why}");
            }
            let why = inflate(compression, &data[..data.len() / 2], bytes).unwrap_err();
            assert!(why.starts_with("a chunk is damaged: "), "{compression}: {why}");
            assert!(
                inflate(compression, &[], bytes).is_err() && inflate(compression, &data, u64::MAX).is_err()
            );
        }
        // Whatever is wrong with it, it ends nothing.
        let octets: Vec<u8> = (0..600_u32).flat_map(|it| (it / 3).to_le_bytes()).collect();
        let mut random = 7_u64;
        for (compression, data) in compressed(&octets) {
            for _ in 0..3_000 {
                let mut damaged = data.clone();
                for _ in 0..3 {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let at = (random >> 33) as usize % damaged.len();
                    damaged[at] = (random >> 16) as u8;
                }
                let _ = inflate(compression, &damaged, octets.len() as u64);
            }
        }
        assert_eq!(inflate("xz", &[], 0), Err("a chunk is compressed by 'xz', which is not read".to_owned()));
    }
}
