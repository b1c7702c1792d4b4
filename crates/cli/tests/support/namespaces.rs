//! Network namespaces for tests.

use std::process::Command;

/// Fails, and says why, where no network namespaces can be made.
pub(crate) fn need_namespaces(test: &str) {
    let id = Command::new("id").arg("-u").output().unwrap();
    let is_root = String::from_utf8_lossy(&id.stdout).trim() == "0";
    assert!(is_root, "{test}: only root may make network namespaces");
}
