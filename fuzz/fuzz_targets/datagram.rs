//! The datagram path into a live participant: octets at the start, then whatever the fuzzer makes of them.
//! The participant is that of the seeded test `fuzz_datagram`.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/proto/tests/support/live.rs"]
mod live;

/// Inputs that one participant endures before a fresh one takes its place: state makes inputs meaningful,
/// a fresh start keeps findings easy to replay.
const INPUTS_PER_LIFE: u32 = 200;

struct Victim {
    live: live::Live,
    corpus: Vec<Vec<u8>>,
    age: u32,
}

thread_local! {
    static VICTIM: RefCell<Option<Victim>> = const { RefCell::new(None) };
}

// The first two octets choose a datagram that was really sent; the rest overwrites it from an offset on.
fuzz_target!(|octets: &[u8]| {
    VICTIM.with_borrow_mut(|slot| {
        let mut victim = slot.take().filter(|victim| victim.age < INPUTS_PER_LIFE).unwrap_or_else(|| {
            let (live, corpus) = live::converse();
            Victim { live, corpus, age: 0 }
        });
        victim.age += 1;
        let input = match octets {
            [choice, high, low, rest @ ..] if *choice < 0xc0 => {
                let mut datagram = victim.corpus[usize::from(*choice) % victim.corpus.len()].clone();
                let offset = usize::from(u16::from_be_bytes([*high, *low])) % datagram.len();
                let end = datagram.len().min(offset + rest.len());
                datagram.splice(offset..end, rest.iter().copied());
                datagram
            }
            _ => octets.to_vec(),
        };
        victim.live.endure(&input);
        *slot = Some(victim);
    });
});
