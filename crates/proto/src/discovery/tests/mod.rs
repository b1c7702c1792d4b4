//! Scenarios of discovery on a make-believe LAN.

mod hostile;
mod network;
mod scenario;
