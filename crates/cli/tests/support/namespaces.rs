//! Network namespaces for tests.

use std::process::Command;

/// Only root may make network namespaces; where even root may not, the test fails and says so.
pub(crate) fn may_make_namespaces(test: &str) -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    let root = String::from_utf8_lossy(&id.stdout).trim() == "0";
    if !root {
        assert!(std::env::var_os("CI").is_none(), "only root may make a network namespace");
        eprintln!("{test}: skipped, only root may make a network namespace");
    }
    root
}
