//! Scenarios of discovery on a make-believe LAN.

mod announced;
mod consistency;
mod departures;
mod explain;
mod hostile;
mod ignore;
mod judge;
mod lead;
mod links;
mod many;
mod moves;
mod neighbours;
mod network;
mod peer;
mod scenario;
mod silence;
mod small;
mod told_type;
mod trust;
mod types;
mod untyped;
mod wide;
