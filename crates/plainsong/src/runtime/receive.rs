//! The threads of a domain.

use std::sync::Arc;

use super::Shared;
use crate::transport::Transport;

#[derive(Clone, Copy)]
pub(crate) enum ReceiveThread {}
impl ReceiveThread {
    pub(crate) fn all(_: &Transport) -> Vec<Self> {
        Vec::new()
    }
    pub(crate) fn name(self) -> &'static str {
        match self {}
    }
}
pub(crate) fn run(_: &Arc<Shared>, _: ReceiveThread) {}
pub(crate) fn run_timer(_: &Arc<Shared>) {}
