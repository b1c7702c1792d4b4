//! The nemesis: processes in networks of their own, which are killed, stopped and cut off from each other,
//! and what they must have agreed on all the same.

mod history;
mod network;
