//! Scenarios of discovery on a make-believe LAN.

mod explain;
mod hostile;
mod network;
mod scenario;
