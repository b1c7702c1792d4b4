//! What the kernel promises of segments, and what is refused.

use std::fs::File;

use super::*;

const BYTES: usize = 64 << 10;

fn segment() -> Segment {
    Segment::create(BYTES, Pages::Usual).unwrap()
}

#[test]
#[cfg_attr(miri, ignore = "a mapping")]
fn what_one_side_writes_the_other_one_reads() {
    let own = segment();
    let peer = PeerSegment::map(own.fd(), BYTES..=BYTES).unwrap();
    own.store32(4, 7);
    own.store64(8, 8);
    own.release64(16, 9);
    own.copy_in(BYTES - 13, b"thirteen long");
    assert_eq!((peer.load32(4), peer.load64(8), peer.acquire64(16)), (7, 8, 9));
    let mut octets = b"kept ".to_vec();
    peer.copy_out(BYTES - 13, 13, &mut octets);
    assert_eq!(octets, b"kept thirteen long");
    assert_eq!(peer.range(BYTES - 13, 8), Some(&b"thirteen"[..]));
    assert_eq!(peer.range(BYTES - 13, 14), None);
    assert_eq!(peer.range(usize::MAX, 2), None);
    drop(own);
    assert_eq!(peer.load64(8), 8, "it stays until nobody has it");
}

#[test]
fn octets_are_copied_from_and_to_any_place() {
    let memory = HeapMemory::new(256);
    let octets: Vec<u8> = (0..64).collect();
    let step = if cfg!(miri) { 5 } else { 1 };
    for offset in 0..17 {
        for length in (offset % step..=64).step_by(step) {
            memory.copy_in(offset, &octets[..length]);
            let mut copy = Vec::new();
            memory.copy_out(offset, length, &mut copy);
            assert_eq!(copy, octets[..length]);
        }
    }
}

#[test]
fn what_is_beyond_the_end_is_out_of_reach() {
    fn panics(access: impl FnOnce(&HeapMemory) + std::panic::UnwindSafe) {
        let refused = std::panic::catch_unwind(|| access(&HeapMemory::new(64)));
        assert!(refused.is_err());
    }
    panics(|memory| assert_eq!(memory.load64(64), 0));
    panics(|memory| assert_eq!(memory.load64(usize::MAX - 7), 0));
    panics(|memory| assert_eq!(memory.load64(4), 0));
    panics(|memory| assert_eq!(memory.load32(62), 0));
    panics(|memory| memory.copy_in(60, &[0; 5]));
    panics(|memory| memory.copy_out(1, usize::MAX, &mut Vec::new()));
}

/// The seals hold against the maker, too.
#[test]
#[cfg_attr(miri, ignore = "a mapping")]
fn nobody_else_can_write_to_it_cut_it_or_punch_holes() {
    let own = segment();
    let fd = own.fd().as_raw_fd();
    let fails = |result: libc::c_int| assert!(result < 0);
    // SAFETY: plain system calls, which fail.
    unsafe {
        fails(libc::ftruncate(fd, 4_096));
        fails(libc::ftruncate(fd, 1 << 20));
        let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        fails(libc::fallocate(fd, punch, 0, 4_096));
        fails(libc::write(fd, [0_u8; 1].as_ptr().cast(), 1) as libc::c_int);
        fails(libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_WRITE));
        fails(libc::madvise(own.mapping.octets.start.as_ptr().cast(), 4_096, libc::MADV_REMOVE));
    }
    let writable = Mapping::new(own.fd(), BYTES, libc::PROT_READ | libc::PROT_WRITE);
    assert!(writable.is_err());
    let peer = PeerSegment::map(own.fd(), BYTES..=BYTES).unwrap();
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a mapping of ours, whose protection stays as it is.
    fails(unsafe { libc::mprotect(peer.0.octets.start.as_ptr().cast(), BYTES, protection) });
}

fn refusal(fd: BorrowedFd<'_>) -> String {
    match PeerSegment::map(fd, 4_096..=BYTES) {
        Ok(_) => "mapped".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn sealed(bytes: libc::off_t, fills: bool, seals: libc::c_int) -> OwnedFd {
    let fd = anonymous(Pages::Usual).unwrap();
    // SAFETY: plain system calls with a descriptor of ours.
    unsafe {
        check(libc::ftruncate(fd.as_raw_fd(), bytes)).unwrap();
        if fills {
            check(libc::fallocate(fd.as_raw_fd(), 0, 0, bytes)).unwrap();
        }
        check(libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals)).unwrap();
    }
    fd
}

#[test]
#[cfg_attr(miri, ignore = "a mapping")]
fn what_is_no_segment_is_refused_with_the_reason() {
    let (reading, _writing) = io::pipe().unwrap();
    assert_eq!(refusal(reading.as_fd()), "it is no sealed memory");
    assert_eq!(refusal(File::open("/dev/zero").unwrap().as_fd()), "it is no sealed memory");
    let lacks = sealed(4_096, true, SEALS & !libc::F_SEAL_SHRINK & !libc::F_SEAL_SEAL);
    assert!(refusal(lacks.as_fd()).starts_with("it lacks seals"), "{}", refusal(lacks.as_fd()));
    let lacks = sealed(4_096, true, SEALS & !libc::F_SEAL_FUTURE_WRITE);
    assert!(refusal(lacks.as_fd()).starts_with("it lacks seals"), "{}", refusal(lacks.as_fd()));
    let sparse = sealed(8_192, false, SEALS);
    assert_eq!(refusal(sparse.as_fd()), "only 0 of its 8192 octets are there");
    let small = sealed(4_095, true, SEALS);
    assert_eq!(refusal(small.as_fd()), "it has 4095 octets, between 4096 and 65536 are allowed");
    let large = sealed(BYTES as i64 + 1, true, SEALS);
    assert_eq!(refusal(large.as_fd()), "it has 65537 octets, between 4096 and 65536 are allowed");
    assert_eq!(refusal(sealed(4_097, true, SEALS).as_fd()), "mapped");
}

#[test]
#[cfg_attr(miri, ignore = "a mapping")]
fn a_segment_that_cannot_be_had_is_an_error() {
    assert_eq!(Segment::create(0, Pages::Usual).err().unwrap().kind(), io::ErrorKind::InvalidInput);
    assert!(Segment::create(usize::MAX, Pages::Usual).is_err());
    // More than any machine has.
    assert!(Segment::create(1 << 50, Pages::Usual).is_err());
}

/// Whether this host has set some aside or not.
#[test]
#[cfg_attr(miri, ignore = "a mapping")]
fn huge_pages_are_used_if_there_are_some_and_others_else() {
    const HUGE: usize = 2 << 20;
    let own = Segment::create(HUGE, Pages::Huge).unwrap();
    let peer = PeerSegment::map(own.fd(), HUGE..=HUGE).unwrap();
    own.copy_in(HUGE - 4, b"last");
    assert_eq!(peer.range(HUGE - 4, 4), Some(&b"last"[..]));
}

/// The process is not killed by a signal.
#[test]
#[cfg_attr(miri, ignore = "a process")]
fn a_segment_longer_than_files_may_be_is_an_error() {
    let test = "transport::memory::segment::tests::makes_a_segment_where_files_are_short";
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let output = command.args([test, "--exact", "--ignored"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
#[ignore = "what another test starts as a process"]
fn makes_a_segment_where_files_are_short() {
    let limit = libc::rlimit { rlim_cur: BYTES as u64, rlim_max: BYTES as u64 };
    // SAFETY: the kernel reads a local variable.
    check(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }).unwrap();
    assert!(Segment::create(BYTES, Pages::Usual).is_ok());
    let refusal = Segment::create(BYTES + 1, Pages::Usual).err().unwrap();
    assert_eq!(refusal.raw_os_error(), Some(libc::EFBIG));
}
