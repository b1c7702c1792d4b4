//! Scenarios of discovery on a make-believe LAN.

mod announced;
mod explain;
mod hostile;
mod network;
mod scenario;
