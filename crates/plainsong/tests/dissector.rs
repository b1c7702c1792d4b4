//! An independent reader of our datagrams: tshark's RTPS dissector finds nothing malformed in discovery,
//! data, fragments, acknowledgements and departures.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{Blob, PATIENCE, Point, participant_with, reader, until, writer};
use plainsong::prelude::*;

/// One that no other test file uses: the capture must hold our own datagrams only.
const DOMAIN: u16 = 230;

#[test]
fn tshark_finds_nothing_malformed() {
    if Command::new("tshark").arg("--version").stdout(Stdio::null()).status().is_err() {
        assert!(std::env::var_os("CI").is_none(), "tshark is missing: install the package tshark");
        eprintln!("SKIPPED: tshark is missing, so no independent dissector looked at our datagrams");
        return;
    }
    let file = std::env::temp_dir().join(format!("plainsong-dissector-{}.pcap", std::process::id()));
    let capture = start_capture(&file);
    exchange();
    // What was captured last is written last: acknowledgements.
    until("an acknowledgement is written down", || {
        fields(&file, "rtps.sm.id", "rtps.sm.id == 6").contains("0x06")
    });
    end_capture(capture);
    let kinds = fields(&file, "rtps.sm.id", "rtps");
    let malformed = dissect(&file, "_ws.malformed or _ws.expert.severity == error");
    std::fs::remove_file(&file).unwrap();
    // DATA, HEARTBEAT, ACKNACK, DATA_FRAG, INFO_DST, INFO_TS were all looked at.
    for id in ["0x15", "0x07", "0x06", "0x16", "0x0e", "0x09"] {
        assert!(kinds.contains(id), "no submessage {id} was captured");
    }
    assert_eq!(malformed, "", "tshark calls these datagrams malformed");
}

/// Everything a pair of participants usually says.
fn exchange() {
    let [first, second] = [(); 2].map(|()| participant_with(DOMAIN, common::udp()));
    let point_writer = writer::<Point>(&first, "Points", QosSet::writer().keep_all());
    let point_reader = reader::<Point>(&second, "Points", QosSet::reader().reliable().keep_all());
    let qos = QosSet::writer().keep_all().representation(XcdrVersion::Xcdr2);
    let blob_writer = writer::<Blob>(&first, "Blobs", qos);
    let qos = QosSet::reader().reliable().keep_all().representation(XcdrVersion::Xcdr2);
    let blob_reader = reader::<Blob>(&second, "Blobs", qos);
    until("both pairs match", || {
        point_writer.matched_subscriptions().unwrap().len()
            + blob_writer.matched_subscriptions().unwrap().len()
            == 2
    });
    let point = Point { id: 1, x: 0.5, y: -0.5 };
    point_writer.write(&point).unwrap();
    point_writer.dispose(&point).unwrap();
    blob_writer.write(&Blob { number: 1, octets: vec![7; 300_000] }).unwrap();
    until("all arrived", || {
        point_writer.wait_for_acknowledgments(PATIENCE).is_ok()
            && blob_writer.wait_for_acknowledgments(PATIENCE).is_ok()
    });
    assert_eq!(blob_reader.take().unwrap().len(), 1);
    assert!(!point_reader.take().unwrap().is_empty());
}

fn start_capture(file: &Path) -> Capture {
    let ports = format!("udp portrange {}-{}", 7400 + 250 * DOMAIN, 7400 + 250 * DOMAIN + 249);
    let mut capture = Command::new("tshark")
        .args(["-i", "lo", "-B", "32", "-f", &ports, "-w"])
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(capture.stderr.take().unwrap()).lines();
    let started = lines.by_ref().map_while(Result::ok).any(|line| line.contains("Capturing on"));
    assert!(started, "tshark cannot capture on lo: run as root or in a network namespace of your own");
    // Keeps the pipe open: tshark ends when it cannot write to it.
    std::thread::spawn(move || lines.count());
    // tshark says so before its packet socket is bound: the file appears after that.
    let capture = Capture(capture);
    until("the capture file appears", || file.metadata().is_ok_and(|data| data.len() > 0));
    capture
}

/// A running tshark, which a failing test must not leave behind.
struct Capture(Child);

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn end_capture(mut capture: Capture) {
    // The shell's own kill: a bare machine has no program of that name.
    Command::new("sh").args(["-c", &format!("kill -INT {}", capture.0.id())]).status().unwrap();
    capture.0.wait().unwrap();
}

fn dissect(file: &Path, filter: &str) -> String {
    let output = Command::new("tshark").arg("-r").arg(file).args(["-Y", filter]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn fields(file: &Path, field: &str, filter: &str) -> String {
    let output = Command::new("tshark")
        .arg("-r")
        .arg(file)
        .args(["-Y", filter, "-T", "fields", "-e", field])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}
