//! Whether the lengths that a record tells fit into it. The library that reads records takes memory for a
//! string before it looks for its octets.

use mcap::records::op;

/// Whether anybody looks at records of this kind.
pub(crate) const fn is_read(opcode: u8) -> bool {
    matches!(opcode, op::SCHEMA | op::CHANNEL | op::MESSAGE | op::CHUNK)
}

/// Whether all strings in it end before it does. Only of records that are read.
pub(crate) fn fit(opcode: u8, mut record: &[u8]) -> bool {
    let rest = &mut record;
    match opcode {
        // Its id and that of its schema; topic and encoding; metadata.
        op::CHANNEL => {
            skip(rest, 4).and_then(|()| skip_text(rest)).and_then(|()| skip_text(rest)).is_some()
                && pairs_fit(rest)
        }
        // Its id; name, encoding and text.
        op::SCHEMA => skip(rest, 2).is_some() && (0..3).all(|_| skip_text(rest).is_some()),
        // Two times, size and checksum; the compression.
        op::CHUNK => skip(rest, 28).and_then(|()| skip_text(rest)).is_some(),
        _ => true,
    }
}

fn skip(rest: &mut &[u8], count: usize) -> Option<()> {
    *rest = rest.get(count..)?;
    Some(())
}

fn length(rest: &mut &[u8]) -> Option<usize> {
    let (length, after) = rest.split_first_chunk()?;
    *rest = after;
    usize::try_from(u32::from_le_bytes(*length)).ok()
}

fn skip_text(rest: &mut &[u8]) -> Option<()> {
    let length = length(rest)?;
    skip(rest, length)
}

fn pairs_fit(rest: &mut &[u8]) -> bool {
    let Some(mut pairs) = length(rest).and_then(|length| rest.get(..length)) else { return false };
    while !pairs.is_empty() {
        if skip_text(&mut pairs).and_then(|()| skip_text(&mut pairs)).is_none() {
            return false;
        }
    }
    true
}

/// The records of a chunk, one after the other: their kinds and octets. `None`: it ends within one.
pub(crate) fn records(mut chunk: &[u8]) -> impl Iterator<Item = Option<(u8, &[u8])>> {
    std::iter::from_fn(move || {
        let (opcode, rest) = chunk.split_first()?;
        chunk = &[];
        let Some((length, rest)) = rest.split_first_chunk() else { return Some(None) };
        let length = usize::try_from(u64::from_le_bytes(*length)).ok();
        let Some((record, rest)) = length.and_then(|length| rest.split_at_checked(length)) else {
            return Some(None);
        };
        chunk = rest;
        Some(Some((*opcode, record)))
    })
}
