//! A simulator for the protocol core of Plainsong: many participants in one thread, virtual time, a
//! network that misbehaves as a seed tells it to, and checkers that know what must hold all the same.
#![forbid(unsafe_code)]

pub mod atomic;
pub mod atomic_model;
pub mod check;
pub mod clock;
pub mod decider;
pub mod dissect;
pub mod fault;
pub mod ledger;
pub mod mutation;
pub mod network;
pub mod node;
pub mod qos;
pub mod rng;
pub mod run;
pub mod sample;
pub mod scale;
pub mod trace;
pub mod workload;
pub mod world;
