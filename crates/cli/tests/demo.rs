//! The demo ends with whoever reads it, and leaves no process behind.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn the_demo_ends_in_order_when_nobody_reads_it_any_more() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_plainsong"))
        .args(["demo", "--plain", "--seconds", "600", "--domain", "229"])
        .env("PLAINSONG_INTERFACES", "lo")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.starts_with("interface lo"), "{first}");
    // Closes the pipe.
    drop(lines);
    let since = Instant::now();
    while demo.try_wait().unwrap().is_none() && since.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = demo.kill();
    let output = demo.wait_with_output().unwrap();
    // Its processes have that end of the pipe, too: all of them are gone.
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success(), "{:?} after {:?}", output.status, since.elapsed());
}
