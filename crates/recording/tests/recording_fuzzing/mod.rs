//! One run of the fuzzer of recordings: whatever the octets, no panic, and no more memory than they have.

#![allow(unreachable_pub, reason = "two crates include it")]

use plainsong_recording::{Change, Input, Item};

/// Whether all of it could be read, and had something.
pub fn run(octets: &[u8]) -> bool {
    let mut input = Input::new(octets);
    let (mut changes, mut kept) = (0_u64, 0_usize);
    let mut is_recording = true;
    loop {
        match input.next_item() {
            Ok(Some(Item::Change(change))) => {
                changes += 1;
                if let Change::Sample { payload, .. } = &change {
                    kept += payload.len();
                }
            }
            Ok(Some(Item::Writer(_, writer))) => {
                // What is told of a type is looked at as when it is played.
                if let Some(ty) = &writer.ty {
                    let _ = plainsong_proto::type_support::DynamicType::new(&writer.type_name, ty.clone());
                }
            }
            Ok(None) => break,
            Err(_) => {
                is_recording = false;
                break;
            }
        }
    }
    let (flaws, count) = input.flaws();
    assert!(flaws.len() as u64 <= count && kept <= octets.len(), "{kept} octets of {}", octets.len());
    assert!(input.position() <= octets.len() as u64);
    is_recording && count == 0 && changes > 0
}
