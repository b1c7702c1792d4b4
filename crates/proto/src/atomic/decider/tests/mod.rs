//! Stories of voters in virtual time. `sim decider` has everything that goes wrong.

mod cluster;
mod links;
mod octets;
mod stories;
