//! Right histories have no faults. Each mistake that is made in one is noticed and called by its name.

mod append;
mod order;
mod register;

use crate::random::Random;

/// When operations of some clients began, took place and ended, in the order in which they took place. Each
/// client has one at a time.
struct Moment {
    began_ns: u64,
    ended_ns: u64,
}

/// So many operations of so many clients, beginning at a time.
fn moments(random: &mut Random, clients: u64, count: usize, from_ns: u64) -> Vec<Moment> {
    let mut all = Vec::new();
    for _ in 0..clients {
        let mut now_ns = from_ns;
        for _ in 0..count / clients as usize {
            let began_ns = now_ns + random.below(50);
            let at_ns = began_ns + random.below(100);
            let ended_ns = at_ns + random.below(100);
            now_ns = ended_ns + 1;
            all.push((at_ns, Moment { began_ns, ended_ns }));
        }
    }
    all.sort_by_key(|(at_ns, _)| *at_ns);
    all.into_iter().map(|(_, moment)| moment).collect()
}
