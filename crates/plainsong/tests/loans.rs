//! Samples that are made where their readers see them, and read where they arrived.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::process::{Command, Stdio};

use common::{PATIENCE, Pair, fresh_domain, participant, participant_with, reader, until, writer};
use plainsong::data_writer::NotWritten;
use plainsong::prelude::*;
use plainsong::{Error, OutOfResources, PreconditionNotMet};

const CELLS: usize = 20_000;

/// Its memory is its wire form.
#[derive(DdsType, Debug, PartialEq)]
#[dds(name = "Grid", final)]
#[repr(C)]
struct Grid {
    #[dds(key)]
    id: u32,
    step: u32,
    cells: [f64; CELLS],
}

/// As that, and short.
#[derive(DdsType, Debug, Clone, Copy, PartialEq)]
#[dds(name = "Pose", final)]
#[repr(C)]
struct Pose {
    x: f64,
    y: f64,
    flags: [u8; 8],
}

/// As that, with structures in it.
type Metres = f32;

#[derive(DdsType, Debug, Clone, Copy, PartialEq)]
#[dds(name = "Point", final, plain)]
#[repr(C)]
struct Point {
    x: Metres,
    y: Metres,
}

const POINTS: usize = 10_000;

#[derive(DdsType, Debug, PartialEq)]
#[dds(name = "Cloud", final, plain)]
#[repr(C)]
struct Cloud {
    #[dds(key)]
    id: u32,
    count: u32,
    origin: Point,
    points: [Point; POINTS],
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(name = "Frame")]
struct Frame<'a> {
    number: u32,
    encoding: String,
    pixels: OctetSeq<'a>,
    is_last: bool,
}

const BYTES: usize = 1 << 20;

fn kept() -> (QosSet, QosSet) {
    (QosSet::writer().keep_all(), QosSet::reader().reliable().keep_all())
}

fn pair<T: DdsType>() -> Pair<T> {
    let (offered, requested) = kept();
    Pair::new(offered, requested)
}

fn fill(grid: &mut Grid, step: u32) {
    (grid.id, grid.step) = (7, step);
    grid.cells.iter_mut().enumerate().for_each(|(at, cell)| *cell = f64::from(step) + at as f64);
}

fn is_filled(grid: &Grid, step: u32) -> bool {
    let cells = grid.cells.iter().enumerate();
    (grid.id, grid.step) == (7, step)
        && cells.into_iter().all(|(at, cell)| *cell == f64::from(step) + at as f64)
}

fn frame(writer: &DataWriter<Frame<'static>>, number: u32, encoding: &str) -> (Frame<'static>, *const u8) {
    let mut pixels = writer.loan_octets(BYTES).unwrap();
    pixels.fill(number as u8);
    let place = pixels.as_ptr();
    (Frame { number, encoding: encoding.into(), pixels: pixels.into(), is_last: true }, place)
}

fn is_whole(frame: &Frame<'_>, number: u32) -> bool {
    let pixels = frame.pixels.len() == BYTES && frame.pixels.iter().all(|pixel| *pixel == number as u8);
    frame.number == number && frame.is_last && pixels
}

#[test]
fn a_sample_is_read_where_it_was_made() {
    let pair: Pair<Grid> = pair();
    let mut all = Vec::new();
    for step in 0..3 {
        let mut loan = pair.writer.loan().unwrap();
        fill(&mut loan, step);
        let place = std::ptr::from_ref::<Grid>(&loan);
        assert_eq!(loan.is_shared(), cfg!(target_os = "linux"));
        loan.write().unwrap();
        let sample = pair.reader.wait_take_in_place(PATIENCE).unwrap().remove(0);
        assert!(sample.is_in_place() && is_filled(sample.data().unwrap(), step));
        assert_eq!(sample.is_in_shared_memory(), cfg!(target_os = "linux"));
        assert_eq!(std::ptr::from_ref(sample.data().unwrap()), place, "within a process nothing is copied");
        all.push(sample);
    }
    let handle = pair.writer.matched_subscriptions().unwrap();
    assert_eq!(handle.len(), 1);
    drop(pair);
    for (step, sample) in (0..).zip(&all) {
        assert!(is_filled(sample.data().unwrap(), step), "it outlives its reader and its writer");
    }
}

#[test]
fn structures_in_a_plain_structure_are_lent_with_it() {
    let pair: Pair<Cloud> = pair();
    let mut loan = pair.writer.loan().unwrap();
    (loan.id, loan.count) = (7, POINTS as u32);
    loan.origin = Point { x: 0.5, y: -0.5 };
    loan.points.iter_mut().enumerate().for_each(|(at, point)| *point = Point { x: at as f32, y: 1.0 });
    loan.write().unwrap();
    let sample = pair.reader.wait_take_in_place(PATIENCE).unwrap().remove(0);
    let cloud = sample.data().unwrap();
    assert!(sample.is_in_place() && (cloud.id, cloud.count) == (7, POINTS as u32));
    assert_eq!(
        (cloud.origin, cloud.points[9_999]),
        (Point { x: 0.5, y: -0.5 }, Point { x: 9_999.0, y: 1.0 })
    );
}

#[test]
fn few_octets_are_no_exception() {
    let pair: Pair<Pose> = pair();
    let pose = Pose { x: 1.5, y: -2.0, flags: [3; 8] };
    let mut loan = pair.writer.loan().unwrap();
    *loan = pose;
    assert!(!loan.is_shared());
    loan.write().unwrap();
    let sample = pair.reader.wait_take_in_place(PATIENCE).unwrap().remove(0);
    assert_eq!(sample.data(), Some(&pose));
    assert!(!sample.is_in_shared_memory());
    pair.writer.loan().unwrap().write_with(&WriteOptions::new().source_timestamp(Time::now())).unwrap();
    assert_eq!(pair.reader.wait_take(PATIENCE).unwrap().len(), 1);
}

#[test]
fn octets_that_are_filled_in_place_stay_there() {
    let pair: Pair<Frame<'static>> = pair();
    let (sample, place) = frame(&pair.writer, 1, "rgb8");
    pair.writer.write(&sample).unwrap();
    let taken = pair.reader.wait_take(PATIENCE).unwrap().remove(0).data.unwrap();
    assert!(is_whole(&taken, 1) && taken.encoding == "rgb8");
    if cfg!(target_os = "linux") {
        assert_eq!(taken.pixels.as_ptr(), place);
    }

    // Written again, with something else around them, they are copied: who has the first keeps what it sees.
    let again = Frame { number: 1, encoding: "bgr8".into(), ..sample };
    pair.writer.write(&again).unwrap();
    let second = pair.reader.wait_take(PATIENCE).unwrap().remove(0).data.unwrap();
    assert!(is_whole(&second, 1) && second.encoding == "bgr8" && taken.encoding == "rgb8");
    assert_ne!(second.pixels.as_ptr(), place);

    let long = "long".repeat(1_000);
    let (sample, _) = frame(&pair.writer, 2, &long);
    pair.writer.write(&sample).unwrap();
    let taken = pair.reader.wait_take(PATIENCE).unwrap().remove(0).data.unwrap();
    assert!(is_whole(&taken, 2) && taken.encoding == long, "what does not fit before them moves them");

    let mut pixels = pair.writer.loan_octets(BYTES).unwrap();
    pixels.truncate(5_000);
    pixels.fill(4);
    let short = Frame { number: 3, encoding: String::new(), pixels: pixels.into(), is_last: false };
    pair.writer.write(&short).unwrap();
    let taken = pair.reader.wait_take(PATIENCE).unwrap().remove(0).data.unwrap();
    assert_eq!(taken, short);
}

/// Without a loan they are encoded once, and that is what the history and all readers of the process have.
#[test]
#[cfg(target_os = "linux")]
fn long_payloads_are_not_copied_within_a_process() {
    let lasting = |qos: QosSet| qos.keep_last(3).durability(Durability::TransientLocal);
    let (domain, requested) = (fresh_domain(), lasting(QosSet::reader().reliable()));
    let [one, other] = [participant(domain), participant(domain)];
    let there: DataWriter<Frame<'static>> = writer(&one, "Plain", lasting(QosSet::writer()));
    let near: DataReader<Frame<'static>> = reader(&one, "Plain", requested.clone());
    let far: DataReader<Frame<'static>> = reader(&other, "Plain", requested.clone());
    until("both match", || there.matched_subscriptions().unwrap().len() == 2);
    let lengths = [4 << 10, 20_000, BYTES];
    let mut places = Vec::new();
    for length in lengths {
        let pixels = vec![7; length].into();
        there.write(&Frame { number: 7, encoding: "rgb8".into(), pixels, is_last: true }).unwrap();
        let [near, far] = [&near, &far].map(|it| it.wait_take(PATIENCE).unwrap().remove(0).data.unwrap());
        assert!(near.pixels.len() == length && near.pixels == far.pixels);
        assert_eq!(near.pixels.as_ptr(), far.pixels.as_ptr());
        places.push(near.pixels.as_ptr());
    }
    let late: DataReader<Frame<'static>> = reader(&other, "Plain", requested);
    let mut kept = Vec::new();
    while kept.len() < lengths.len() {
        kept.extend(late.wait_take(PATIENCE).unwrap());
    }
    let kept: Vec<_> = kept.iter().map(|it| it.data.as_ref().unwrap().pixels.as_ptr()).collect();
    assert_eq!(kept, places, "the history has no other copy");
}

#[test]
fn an_encoded_sample_is_written_where_it_was_made() {
    let pair: Pair<Frame<'static>> = pair();
    let any = pair.writer.as_any();
    let (sample, _) = frame(&pair.writer, 5, "mono8");
    pair.writer.write(&sample).unwrap();
    let encoded = pair.reader.as_any().read_serialized().unwrap_or_default();
    until("it arrives", || !pair.reader.as_any().read_serialized().unwrap().is_empty());
    drop(encoded);
    let encoded = pair.reader.as_any().take_serialized().unwrap().remove(0).payload;
    let mut loan = any.loan_serialized(encoded.len() + 100).unwrap();
    loan.truncate(encoded.len());
    loan.copy_from_slice(encoded.as_slice());
    let place = loan.as_ptr();
    loan.write().unwrap();
    until("it arrives", || !pair.reader.as_any().read_serialized().unwrap().is_empty());
    let arrived = pair.reader.as_any().take_serialized().unwrap().remove(0).payload;
    assert_eq!(arrived.as_slice(), encoded.as_slice());
    assert_eq!(arrived.as_slice().as_ptr(), place);

    let mut garbage = any.loan_serialized(5_000).unwrap();
    garbage.fill(0xff);
    let NotWritten { error, loan } = garbage.write().unwrap_err();
    assert!(matches!(error, Error::BadParameter(_)), "{error}");
    assert!(loan.iter().all(|octet| *octet == 0xff), "it is there to be mended");
}

#[test]
fn types_that_are_not_their_wire_form_are_refused() {
    let pair: Pair<Frame<'static>> = pair();
    let error = pair.writer.loan().unwrap_err();
    assert!(matches!(error, Error::PreconditionNotMet(PreconditionNotMet::NotPlain { .. })), "{error}");
    assert!(error.to_string().contains("loan_octets"), "it says what to do: {error}");

    #[derive(DdsType, Debug)]
    #[dds(name = "Growing", plain)]
    #[repr(C)]
    struct Growing {
        id: u32,
        value: f32,
    }
    let participant = participant(fresh_domain());
    let in_2: DataWriter<Growing> =
        writer(&participant, "Growing", QosSet::writer().representation(XcdrVersion::Xcdr2));
    let error = in_2.loan().unwrap_err().to_string();
    assert!(
        error.contains("#[dds(final)]") && error.contains("Xcdr1"),
        "it is plain in the other one: {error}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_pool_that_is_used_up_is_an_error_that_names_the_limit_and_what_is_dropped_is_there_again() {
    let config = Config { memory_pool_bytes_max: 16 << 20, ..common::loopback() };
    let (offered, requested) = (QosSet::writer().keep_last(1), QosSet::reader().reliable().keep_last(1));
    let pair: Pair<Frame<'static>> = Pair::with(&config, offered, requested);
    let mut loans = Vec::new();
    let error = loop {
        match pair.writer.loan_octets(BYTES) {
            Ok(loan) => loans.push(loan),
            Err(error) => break error,
        }
        assert!(loans.len() < 8, "half of 16 MiB does not hold 8 and what is around them");
    };
    assert!(matches!(error, Error::OutOfResources(OutOfResources::Loan { .. })), "{error}");
    assert!(error.to_string().contains("memory_pool_bytes_max"), "{error}");
    assert!(loans.len() >= 6, "{}", loans.len());
    let many = loans.len();

    // Samples that are not made in place are written all the same.
    let plain = Frame { number: 9, encoding: "x".into(), pixels: vec![9; BYTES].into(), is_last: true };
    pair.writer.write(&plain).unwrap();
    assert!(is_whole(pair.reader.wait_take(PATIENCE).unwrap()[0].data.as_ref().unwrap(), 9));

    loans.clear();
    for _ in 0..4 * many {
        drop(pair.writer.loan_octets(BYTES).unwrap());
    }
    for number in 0..4 * many as u32 {
        let (sample, _) = frame(&pair.writer, number, "rgb8");
        pair.writer.write(&sample).unwrap();
        drop(sample);
        assert!(is_whole(pair.reader.wait_take(PATIENCE).unwrap()[0].data.as_ref().unwrap(), number));
    }
}

#[test]
fn what_no_reader_would_take_is_not_lent() {
    for config in [common::loopback(), common::udp()] {
        let (offered, requested) = kept();
        let pair: Pair<Frame<'static>> = Pair::with(&config, offered, requested);
        for bytes in [config.sample_bytes_max + 1, usize::MAX] {
            let errors = [
                pair.writer.loan_octets(bytes).unwrap_err(),
                pair.writer.as_any().loan_serialized(bytes).unwrap_err(),
            ];
            for error in errors {
                assert!(error.to_string().contains("sample_bytes_max"), "{error}");
            }
        }
    }
}

#[test]
fn a_loan_may_outlive_its_writer() {
    let pair: Pair<Grid> = pair();
    let mut loan = pair.writer.loan().unwrap();
    fill(&mut loan, 1);
    let octets = pair.writer.as_any().loan_serialized(5_000).unwrap();
    pair.writer.publisher().delete_writer(&pair.writer.as_any()).unwrap();
    assert!(matches!(pair.writer.loan(), Err(Error::AlreadyDeleted(_))));
    let NotWritten { error, loan } = loan.write().unwrap_err();
    assert!(matches!(error, Error::AlreadyDeleted(_)) && is_filled(&loan, 1), "{error}");
    drop(pair);
    assert!(is_filled(&loan, 1));
    assert!(octets.write().is_err());
}

#[test]
fn a_write_that_finds_no_room_gives_the_loan_back() {
    let (offered, requested) = kept();
    let offered = offered
        .resource_limits(ResourceLimits { max_samples: 1, ..ResourceLimits::default() })
        .max_blocking_time(Duration::from_millis(10));
    let requested = requested.resource_limits(ResourceLimits { max_samples: 1, ..ResourceLimits::default() });
    let pair: Pair<Grid> = Pair::new(offered, requested);
    let mut step = 0;
    let mut refused = loop {
        let mut loan = pair.writer.loan().unwrap();
        fill(&mut loan, step);
        match loan.write() {
            Ok(()) => step += 1,
            Err(NotWritten { error, loan }) => {
                assert!(matches!(error, Error::Timeout { .. }), "{error}");
                break loan;
            }
        }
        assert!(step < 3, "there is room for one on each side");
    };
    refused.id = 8;
    let sample = pair.reader.wait_take_in_place(PATIENCE).unwrap().remove(0);
    assert!(is_filled(sample.data().unwrap(), 0));
    drop(sample);
    refused.id = 7;
    let mut left = Some(refused);
    until("there is room", || match left.take().unwrap().write() {
        Ok(()) => true,
        Err(NotWritten { loan, .. }) => {
            left = Some(loan);
            false
        }
    });
    let mut seen = 1;
    while seen <= step {
        for sample in pair.reader.wait_take_in_place(PATIENCE).unwrap() {
            assert!(is_filled(sample.data().unwrap(), seen));
            seen += 1;
        }
    }
}

#[test]
fn who_joins_late_and_who_shares_no_memory_get_the_same() {
    let domain = fresh_domain();
    let lasting = |qos: QosSet| qos.keep_last(3).durability(Durability::TransientLocal);
    let sender = participant(domain);
    let there: DataWriter<Frame<'static>> = writer(&sender, "Late", lasting(QosSet::writer()));
    for number in 0..5 {
        let (sample, _) = frame(&there, number, "rgb8");
        there.write(&sample).unwrap();
    }
    let apart = participant_with(domain, common::udp());
    for late in [participant(domain), apart] {
        let late: DataReader<Frame<'static>> = reader(&late, "Late", lasting(QosSet::reader().reliable()));
        let mut taken = Vec::new();
        while taken.len() < 3 {
            taken.extend(late.wait_take(PATIENCE).unwrap());
        }
        for (number, sample) in (2..).zip(&taken) {
            assert!(is_whole(sample.data.as_ref().unwrap(), number));
        }
    }
}

/// In the environment of a process that this test has started: the domain.
const DOMAIN: &str = "PLAINSONG_TEST_DOMAIN";

/// What a process that a test has started is to do.
const ROLE: &str = "PLAINSONG_TEST_ROLE";

/// Keeps the first samples of few octets, which were lent with long chunks, and counts what comes after.
#[cfg(target_os = "linux")]
fn keep(domain: u16) {
    let here = participant_with(domain, small_pool());
    let frames: DataReader<Frame<'static>> = reader(&here, "Kept", kept().1);
    let told: DataWriter<Pose> = writer(&here, "Told", kept().0);
    until("all match", || told.matched_subscriptions().unwrap().len() == 1);
    let (mut few, mut long) = (Vec::new(), 0);
    while long < LONG_FRAMES {
        for sample in frames.wait_take(PATIENCE).unwrap() {
            let frame = sample.data.unwrap();
            if frame.pixels.len() == BYTES {
                assert!(is_whole(&frame, long));
                long += 1;
            } else {
                few.push(frame);
            }
        }
    }
    assert!(few.iter().all(|frame| frame.pixels.iter().all(|pixel| *pixel == 9)));
    told.write(&Pose { x: f64::from(long), y: few.len() as f64, flags: [0; 8] }).unwrap();
    told.wait_for_acknowledgments(PATIENCE).unwrap();
}

#[cfg(target_os = "linux")]
const LONG_FRAMES: u32 = 20;

#[cfg(target_os = "linux")]
fn small_pool() -> Config {
    Config { memory_pool_bytes_max: 16 << 20, ..common::loopback() }
}

/// Whoever keeps what he was lent, in whatever size: what finds no room in the memory that is shared goes by
/// UDP, and says so.
#[test]
#[cfg(target_os = "linux")]
fn a_pool_that_is_kept_by_readers_holds_nothing_up() {
    if std::env::var(ROLE).is_ok() {
        return keep(std::env::var(DOMAIN).unwrap().parse().unwrap());
    }
    let domain = fresh_domain();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_pool_that_is_kept_by_readers_holds_nothing_up", "--nocapture"])
        .env(DOMAIN, domain.to_string())
        .env(ROLE, "keep")
        .spawn()
        .unwrap();
    let here = participant_with(domain, small_pool());
    let offered = kept().0.max_blocking_time(PATIENCE);
    let frames: DataWriter<Frame<'static>> = writer(&here, "Kept", offered);
    let told: DataReader<Pose> = reader(&here, "Told", kept().1);
    until("all match", || {
        frames.matched_subscriptions().unwrap().len() == 1 && told.matched_publications().unwrap().len() == 1
    });
    // As long as there are loans, of which five thousand octets are used: they pin what they were lent with.
    let mut few = 0;
    while few < 12 {
        let Ok(mut pixels) = frames.loan_octets(3 << 20) else { break };
        pixels.truncate(5_000);
        pixels.fill(9);
        let frame = Frame { number: few, encoding: String::new(), pixels: pixels.into(), is_last: false };
        frames.write(&frame).unwrap();
        few += 1;
    }
    assert!(few > 1);
    for number in 0..LONG_FRAMES {
        let pixels = vec![number as u8; BYTES].into();
        frames.write(&Frame { number, encoding: "x".into(), pixels, is_last: true }).unwrap();
    }
    let counts = told.wait_take(PATIENCE).unwrap().remove(0).data.unwrap();
    assert_eq!((counts.x, counts.y), (f64::from(LONG_FRAMES), f64::from(few)));
    assert!(child.wait().unwrap().success());
}

/// A history of few octets each, which were filled in long loans.
#[test]
#[cfg(target_os = "linux")]
fn a_history_keeps_what_was_written_and_not_what_was_lent() {
    let config = small_pool();
    let pair: Pair<Frame<'static>> = Pair::with(&config, kept().0, kept().1);
    let lasting = kept().0.durability(Durability::TransientLocal);
    let writer: DataWriter<Frame<'static>> = writer(&pair.participants[0], "Short", lasting);
    for number in 0..50 {
        let mut pixels = writer.loan_octets(BYTES).unwrap();
        pixels.truncate(5_000);
        pixels.fill(9);
        let frame = Frame { number, encoding: String::new(), pixels: pixels.into(), is_last: true };
        writer.write(&frame).unwrap();
        let mut encoded = writer.as_any().loan_serialized(BYTES).unwrap();
        let mut octets = Vec::new();
        plainsong::cdr::to_payload(
            &frame,
            XcdrVersion::Xcdr1,
            plainsong::cdr::Endianness::Little,
            &mut octets,
        )
        .unwrap();
        encoded.truncate(octets.len());
        encoded.copy_from_slice(&octets);
        encoded.write().unwrap();
    }
}

/// What a writer with a pool of 16 MiB asks for that can never be, and what it is told.
#[test]
#[cfg(target_os = "linux")]
fn a_loan_that_no_letting_go_would_make_possible_says_so() {
    let pair: Pair<Frame<'static>> = Pair::with(&small_pool(), kept().0, kept().1);
    let error = pair.writer.loan_octets(9 << 20).unwrap_err().to_string();
    for part in
        ["no loan of 9437184 octets", "8388608 octets at most", "of 16777216", "MEMORY_POOL_BYTES_MAX"]
    {
        assert!(error.contains(part), "{error}");
    }
    assert!(!error.contains("let go"), "{error}");
}

/// Takes what comes.
#[cfg(target_os = "linux")]
fn take_all(domain: u16) {
    let here = participant(domain);
    let frames: DataReader<Frame<'static>> = reader(&here, "Unfit", kept().1);
    let mut next = 0;
    until("all are there", || {
        for sample in frames.take().unwrap() {
            assert!(is_whole(&sample.data.unwrap(), next));
            next += 1;
        }
        next == 3
    });
}

/// Samples that fit no chunk, nor the ring: the first are late, and then go by UDP.
#[test]
#[cfg(target_os = "linux")]
fn a_write_that_waits_for_want_of_shared_memory_says_so() {
    if let Ok(domain) = std::env::var(DOMAIN) {
        return take_all(domain.parse().unwrap());
    }
    let domain = fresh_domain();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_write_that_waits_for_want_of_shared_memory_says_so", "--nocapture"])
        .env(DOMAIN, domain.to_string())
        .spawn()
        .unwrap();
    let here = participant_with(domain, Config { memory_pool_bytes_max: 64 << 10, ..common::loopback() });
    let one_at_a_time = ResourceLimits { max_samples: 1, ..ResourceLimits::default() };
    let offered = kept().0.resource_limits(one_at_a_time).max_blocking_time(Duration::from_millis(30));
    let frames: DataWriter<Frame<'static>> = writer(&here, "Unfit", offered);
    until("it matches", || frames.matched_subscriptions().unwrap().len() == 1);
    let mut said = None;
    for number in 0..3 {
        let pixels = vec![number as u8; BYTES].into();
        let frame = Frame { number, encoding: "x".into(), pixels, is_last: true };
        until("it is written", || match frames.write(&frame) {
            Ok(()) => true,
            Err(error) => {
                said.get_or_insert_with(|| error.to_string());
                false
            }
        });
    }
    frames.wait_for_acknowledgments(PATIENCE).unwrap();
    let said = said.expect("the first waits for the second way");
    let why =
        "long samples found no room in the memory that is shared (raise PLAINSONG_MEMORY_POOL_BYTES_MAX";
    assert!(said.contains(why), "{said}");
    let delivery = frames.delivery().unwrap().to_string();
    assert!(delivery.contains("long samples found no room"), "{delivery}");
    assert!(here.state().unwrap().to_string().contains("PoolUsedUp"));
    assert!(child.wait().unwrap().success());
}

/// Reads grids and frames in a process of its own, and writes them back: what it has read, not a copy.
fn echo(domain: u16) {
    let here = participant(domain);
    let (offered, requested) = kept();
    let grids: DataReader<Grid> = reader(&here, "Grid", requested.clone());
    let frames: DataReader<Frame<'static>> = reader(&here, "Frame", requested);
    let back: DataWriter<Frame<'static>> = writer(&here, "Back", offered.clone());
    let steps: DataWriter<Pose> = writer(&here, "Step", offered);
    until("all match", || {
        back.matched_subscriptions().unwrap().len() + steps.matched_subscriptions().unwrap().len() == 2
    });
    for step in 0..10 {
        let grid = grids.wait_take_in_place(PATIENCE).unwrap().remove(0);
        assert!(is_filled(grid.data().unwrap(), step));
        let flags = [u8::from(grid.is_in_place()); 8];
        steps.write(&Pose { x: f64::from(step), y: 0.0, flags }).unwrap();
        let frame = frames.wait_take(PATIENCE).unwrap().remove(0).data.unwrap();
        assert!(is_whole(&frame, step));
        back.write(&frame).unwrap();
    }
    steps.wait_for_acknowledgments(PATIENCE).unwrap();
    back.wait_for_acknowledgments(PATIENCE).unwrap();
}

#[test]
fn another_process_reads_them_in_place_and_hands_them_on() {
    if let Ok(domain) = std::env::var(DOMAIN) {
        return echo(domain.parse().unwrap());
    }
    let domain = fresh_domain();
    let name = "another_process_reads_them_in_place_and_hands_them_on";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(DOMAIN, domain.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let here = participant(domain);
    let (offered, requested) = kept();
    let grids: DataWriter<Grid> = writer(&here, "Grid", offered.clone());
    let frames: DataWriter<Frame<'static>> = writer(&here, "Frame", offered);
    let back: DataReader<Frame<'static>> = reader(&here, "Back", requested.clone());
    let steps: DataReader<Pose> = reader(&here, "Step", requested);
    until("all match", || {
        let readers =
            grids.matched_subscriptions().unwrap().len() + frames.matched_subscriptions().unwrap().len();
        let writers =
            back.matched_publications().unwrap().len() + steps.matched_publications().unwrap().len();
        readers + writers == 4
    });
    for step in 0..10 {
        let mut grid = grids.loan().unwrap();
        fill(&mut grid, step);
        grid.write().unwrap();
        let (sample, _) = frame(&frames, step, "rgb8");
        frames.write(&sample).unwrap();
        let told = steps.wait_take(PATIENCE).unwrap().remove(0).data.unwrap();
        assert_eq!(told.x, f64::from(step));
        assert_eq!(told.flags == [1; 8], cfg!(target_os = "linux"), "it was read in place");
        let returned = back.wait_take(PATIENCE).unwrap().remove(0).data.unwrap();
        assert!(is_whole(&returned, step));
    }
    assert!(child.wait().unwrap().success());
}
