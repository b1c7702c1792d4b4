//! Groups of ATOMIC topics: members and voters of the protocol core over lanes and a network that misbehave,
//! compared with the one order that must come of it.

mod brief;
mod checks;
mod disk;
mod entry;
mod faults;
mod mistake;
mod participant;
mod plan;
mod process;
mod truth;
mod verdict;
mod world;

pub use mistake::Mistake;
pub use plan::Length;
pub use verdict::{Verdict, run};
