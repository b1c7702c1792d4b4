//! Stores meet losses of power, full disks and damage; what is committed must be there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, mpsc};

use plainsong_proto::atomic::entry::Entry;
use plainsong_proto::atomic::storage::Change;
use plainsong_proto::atomic::view::Decision;
use plainsong_proto::atomic::{self, MemberId};
use plainsong_proto::guid::GuidPrefix;
use plainsong_proto::time::Duration;

use super::lossy::{Faults, Lossy};
use super::*;
use crate::atomic::name::Name;
use crate::base::config::Config;
use crate::base::locks::lock;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

const FILE: &str = "a file of the test";

struct Random(u64);

impl Random {
    fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn batch(&mut self) -> Batch {
        (0..=self.below(12))
            .map(|_| {
                let key = format!("{:03}", self.below(60)).into_bytes();
                let octet = self.below(256) as u8;
                let value = (self.below(5) > 0).then(|| vec![octet; self.below(3_000) as usize]);
                (key, value)
            })
            .collect()
    }
}

fn made(map: &Map, batch: &Batch) -> Map {
    let mut map = map.clone();
    for (key, value) in batch {
        match value {
            Some(value) => drop(map.insert(key.clone(), value.clone())),
            None => drop(map.remove(key)),
        }
    }
    map
}

fn all_of(store: &dyn Store) -> Map {
    let mut map = Map::new();
    store.read(&mut |key, value| drop(map.insert(key.to_vec(), value.to_vec()))).unwrap();
    map
}

/// The octets of a file with an empty map.
fn empty_file() -> Vec<u8> {
    let backend = Lossy::new(Vec::new(), Vec::new(), None, Faults::default());
    let state = Arc::clone(&backend.0);
    FileStore::format(Path::new(FILE), backend).unwrap();
    std::mem::take(&mut lock(&state).medium)
}

/// What became of one life of a store.
struct Life {
    /// What the disk has after it.
    octets: Vec<u8>,
    committed: Map,
    /// What it would have with the batch that failed.
    perhaps: Option<Map>,
    error: Option<StoreError>,
    written_bytes: usize,
}

/// Opens a file that must have one of the maps, and commits batches until something goes wrong or so many
/// are done; then the power is lost.
fn live(octets: &[u8], expected: &[&Map], seed: u64, batches: u64, faults: Faults) -> Life {
    let mut random = Random::of(seed);
    let backend = Lossy::new(octets.to_vec(), octets.to_vec(), Some(seed), faults);
    let state = Arc::clone(&backend.0);
    let mut life = Life {
        octets: Vec::new(),
        committed: expected[0].clone(),
        perhaps: expected.get(1).map(|map| (*map).clone()),
        error: None,
        written_bytes: 0,
    };
    match FileStore::with_backend(Path::new(FILE), backend) {
        Ok(mut store) => {
            let found = all_of(&store);
            assert!(expected.contains(&&found), "seed {seed}: {} keys", found.len());
            (life.committed, life.perhaps) = (found, None);
            for _ in 0..batches {
                let batch = random.batch();
                if let Err(error) = store.commit(&batch) {
                    life.perhaps = Some(made(&life.committed, &batch));
                    // It stays so, whatever the disk would do now.
                    lock(&state).faults = Faults::default();
                    let again = store.commit(&batch).unwrap_err();
                    assert_eq!(again.to_string(), error.to_string());
                    assert!(store.read(&mut |_, _| {}).is_err());
                    life.error = Some(error);
                    break;
                }
                life.committed = made(&life.committed, &batch);
            }
            lock(&state).lose_power().unwrap();
        }
        Err(error) => {
            assert!(!matches!(error, StoreError::Damaged { .. }), "seed {seed}: {error}");
            life.error = Some(error);
            lock(&state).lose_power().unwrap();
        }
    }
    let mut state = lock(&state);
    life.octets = std::mem::take(&mut state.medium);
    life.written_bytes = state.written_bytes;
    life
}

#[test]
fn what_is_committed_outlives_losses_of_power_and_what_is_not_is_there_whole_or_not_at_all() {
    let empty = empty_file();
    let (mut cut_off, mut whole) = (0, 0);
    for seed in 0..150 {
        let mut random = Random::of(seed);
        let mut octets = empty.clone();
        let (mut committed, mut perhaps) = (Map::new(), None::<Map>);
        for life in 0..3 {
            let faults = Faults { loses_power_at: Some(1 + random.below(150)), ..Faults::default() };
            let expected: Vec<&Map> = std::iter::once(&committed).chain(&perhaps).collect();
            let lived = live(&octets, &expected, seed * 10 + life, 12, faults);
            cut_off += u32::from(lived.error.is_some());
            whole += u32::from(perhaps.is_some() && perhaps.as_ref() == Some(&lived.committed));
            (octets, committed, perhaps) = (lived.octets, lived.committed, lived.perhaps);
        }
        let expected: Vec<&Map> = std::iter::once(&committed).chain(&perhaps).collect();
        live(&octets, &expected, seed, 1, Faults::default());
    }
    assert!(cut_off > 200 && whole > 0, "{cut_off} lives were cut off, {whole} last batches were whole");
}

#[test]
fn a_disk_that_is_full_at_any_octet_loses_nothing_that_was_committed() {
    let empty = empty_file();
    let all = live(&empty, &[&Map::new()], 1, 6, Faults::default());
    assert!(all.error.is_none());
    let mut full = 0;
    for room in (0..all.written_bytes).step_by(3_000) {
        let faults = Faults { room_bytes: Some(room), ..Faults::default() };
        let lived = live(&empty, &[&Map::new()], 1, 6, faults);
        let error = lived.error.unwrap_or_else(|| panic!("{room} octets sufficed"));
        assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
        assert!(error.to_string().contains(FILE), "{error}");
        full += 1;
        let expected: Vec<&Map> = std::iter::once(&lived.committed).chain(&lived.perhaps).collect();
        let after = live(&lived.octets, &expected, 2, 3, Faults::default());
        assert!(after.error.is_none());
    }
    assert!(full > 20, "{full}");
}

#[test]
fn after_a_sync_that_failed_the_store_takes_nothing_more_and_the_next_has_what_was_committed() {
    let empty = empty_file();
    let mut failed = 0;
    for sync in 1..20 {
        let faults = Faults { fails_sync: Some(sync), ..Faults::default() };
        let lived = live(&empty, &[&Map::new()], sync, 8, faults);
        let Some(error) = lived.error else { continue };
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        failed += 1;
        let expected: Vec<&Map> = std::iter::once(&lived.committed).chain(&lived.perhaps).collect();
        live(&lived.octets, &expected, 2, 3, Faults::default());
    }
    assert!(failed > 5, "{failed}");
}

#[test]
fn a_file_that_is_damaged_is_said_to_be_or_has_all_that_was_written() {
    let mut damaged = 0;
    let sound = live(&empty_file(), &[&Map::new()], 1, 8, Faults::default());
    let (octets, map) = close(&sound.octets);
    for seed in 0..300 {
        let mut random = Random::of(seed);
        let mut octets = octets.clone();
        let at = random.below(octets.len() as u64) as usize;
        match random.below(3) {
            0 => octets.truncate(at),
            1 => octets[at] ^= 1 << random.below(8),
            _ => octets[at..].iter_mut().take(4_096).for_each(|octet| *octet = 0),
        }
        let backend = Lossy::new(octets.clone(), octets, None, Faults::default());
        match FileStore::with_backend(Path::new(FILE), backend) {
            Ok(store) => assert_eq!(all_of(&store), map, "seed {seed}"),
            Err(error) => {
                assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
                damaged += 1;
            }
        }
    }
    assert!(damaged > 20, "{damaged}");
}

/// Opens a file and closes it in order.
fn close(octets: &[u8]) -> (Vec<u8>, Map) {
    let backend = Lossy::new(octets.to_vec(), octets.to_vec(), None, Faults::default());
    let state = Arc::clone(&backend.0);
    let store = FileStore::with_backend(Path::new(FILE), backend).unwrap();
    let map = all_of(&store);
    drop(store);
    (std::mem::take(&mut lock(&state).medium), map)
}

/// A directory that goes with this.
fn by_members() -> Voting {
    Voting::default()
}

fn by_voters(voters: &str, voter: Option<&str>) -> Voting {
    let config = Config {
        voters: voters.split(',').map(ToOwned::to_owned).collect(),
        voter: voter.map(ToOwned::to_owned),
        state_directory: Some(std::env::temp_dir()),
        ..Config::default()
    };
    Voting::of(&config).unwrap()
}

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plainsong-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_file_of_another_topic_is_refused_by_its_name() {
    let directory = Directory::new("other-topic");
    let state = StateDirectory::open(&directory.0, 3).unwrap();
    let (plan, route) = (Name::new("Plan", "yard"), Name::new("Route", ""));
    let file_of = |name: &Name| state.store(name, &by_members()).unwrap().file().to_owned();
    std::fs::copy(file_of(&plan), file_of(&route)).unwrap();
    let refused = state.store(&route, &by_members()).err().unwrap().to_string();
    assert!(refused.contains("is of topic 'Plan' in partition yard, and not of"), "{refused}");
    assert!(refused.contains("Route-"), "{refused}");
    // Who knows the hash alone says nothing of the names, and what is put aside takes them along.
    let store = state.store(&Name::of_hash(plan.hash()), &by_members());
    store.unwrap().put_aside().unwrap();
    let mut renamed = state.store(&plan, &by_members()).unwrap();
    std::fs::copy(renamed.file(), file_of(&Name::new("Map", ""))).unwrap();
    renamed.put_aside().unwrap();
    assert!(state.store(&Name::new("Map", ""), &by_members()).err().unwrap().to_string().contains("'Plan'"));
}

#[test]
fn a_state_directory_has_one_participant_and_a_file_for_each_group_whatever_its_name() {
    let directory = Directory::new("state");
    let state = StateDirectory::open(&directory.0, 3).unwrap();
    let error = StateDirectory::open(&directory.0, 3).err().unwrap().to_string();
    assert!(error.contains("domain-3") && error.contains(&std::process::id().to_string()), "{error}");
    assert!(StateDirectory::open(&directory.0, 4).is_ok(), "another domain");
    let long = "n".repeat(4_000);
    let names =
        [("", ""), ("plan", ""), ("Plan", ""), ("plan", "a"), ("pl", "an"), ("../../plan", ""), (&long, "")];
    for (topic, partition) in names {
        let batch = [(b"name".to_vec(), Some(format!("{topic} {partition}").into_bytes()))].into();
        state.store(&Name::new(topic, partition), &by_members()).unwrap().commit(&batch).unwrap();
    }
    for (topic, partition) in names {
        let map = all_of(&*state.store(&Name::new(topic, partition), &by_members()).unwrap());
        assert_eq!(map[&b"name"[..]], format!("{topic} {partition}").into_bytes());
    }
    let files = std::fs::read_dir(directory.0.join("domain-3")).unwrap().count();
    assert_eq!(files, names.len() + 1, "and the lock");
    assert_eq!(std::fs::read_dir(&directory.0).unwrap().count(), 2, "nothing is beside the folders");
    drop(state);
    let state = StateDirectory::open(&directory.0, 3).unwrap();
    assert_eq!(all_of(&*state.store(&Name::new("Plan", ""), &by_members()).unwrap()).len(), 1);
}

#[test]
fn what_is_no_store_is_told_and_left_as_it_is() {
    let directory = Directory::new("no-store");
    let state = StateDirectory::open(&directory.0, 0).unwrap();
    let name = Name::new("plan", "");
    drop(state.store(&name, &by_members()).unwrap());
    let folder = directory.0.join("domain-0");
    let is_store = |path: &PathBuf| path.extension().is_some_and(|it| it == "redb");
    let file = std::fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).find(is_store).unwrap();
    for octets in [&b""[..], b"hello", &[0; 100_000]] {
        std::fs::write(&file, octets).unwrap();
        let error = state.store(&name, &by_members()).err().unwrap();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(&*file.to_string_lossy()), "{error}");
        assert_eq!(std::fs::read(&file).unwrap(), octets);
    }
    std::fs::remove_file(&file).unwrap();
    let first = state.store(&name, &by_members()).unwrap();
    // A file that loses power is not locked; its directory is.
    let again = state.store(&name, &by_members()).err();
    assert!(matches!(again, Some(StoreError::InUse { .. })) || cfg!(feature = "power-loss"), "{again:?}");
    drop(first);
    let no_folder = StateDirectory::open(&file, 0).err().unwrap();
    assert!(matches!(no_folder, StoreError::CannotOpen { .. }), "{no_folder}");
}

/// A store that waits before it commits, and fails when it is told to.
#[derive(Clone, Default)]
struct Slow(Arc<(Mutex<Seen>, Condvar)>);

#[derive(Default)]
struct Seen {
    commits: Vec<usize>,
    asides: usize,
    may_go: bool,
    fails: bool,
}

impl Store for Slow {
    fn file(&self) -> &Path {
        Path::new(FILE)
    }

    fn read(&self, _: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        Ok(())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let (seen, changed) = &*self.0;
        let mut seen = changed.wait_while(seen.lock().unwrap(), |seen| !seen.may_go).unwrap();
        seen.commits.push(batch.len());
        if seen.fails { Err(StoreError::DiskFull { file: FILE.into() }) } else { Ok(()) }
    }

    fn put_aside(&mut self) -> Result<(), StoreError> {
        self.0.0.lock().unwrap().asides += 1;
        Ok(())
    }
}

#[test]
fn what_is_kept_of_a_group_that_is_void_is_put_aside_and_claims_and_the_votes_of_voters_stay() {
    let directory = Directory::new("votes");
    let state = StateDirectory::open(&directory.0, 0).unwrap();
    let name = Name::new("plan", "");
    let mut store = state.store(&name, &by_voters("a,b,c", Some("a"))).unwrap();
    let vote = (b"\x0b, and a number".to_vec(), b"vote".to_vec());
    let claims = (b"\x02".to_vec(), b"claims".to_vec());
    assert!(atomic::storage::is_vote(&vote.0) && atomic::storage::is_claim(&claims.0));
    let stays = Map::from([claims.clone(), vote.clone()]);
    let all = Map::from([(b"\x01".to_vec(), b"group".to_vec()), claims.clone(), vote.clone()]);
    store.commit(&all.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect()).unwrap();
    for round in 1..=2 {
        store.put_aside().unwrap();
        assert_eq!(all_of(&*store), stays);
        let aside = store.file().with_extension(format!("{round}.aside"));
        let kept = all_of(&FileStore::open(&aside).unwrap());
        assert_eq!(kept, if round == 1 { all.clone() } else { stays.clone() });
        assert!(!store.file().with_extension("next").exists());
    }
    drop(store);
    assert_eq!(all_of(&*state.store(&name, &by_voters("a,b,c", Some("a"))).unwrap()), stays);
    // Without a vote of its own.
    let name = Name::new("route", "");
    let mut store = state.store(&name, &by_members()).unwrap();
    // What an interrupted start of this left is in nobody's way.
    std::fs::write(store.file().with_extension("next"), b"half").unwrap();
    store.commit(&all.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect()).unwrap();
    store.put_aside().unwrap();
    assert_eq!(all_of(&*store), Map::from([claims]));
}

/// A file from before that says nothing of its voters: they are those of its view.
#[test]
fn who_votes_in_a_group_that_is_kept_is_in_its_file_or_in_its_view() {
    let directory = Directory::new("of-view");
    let state = StateDirectory::open(&directory.0, 0).unwrap();
    let name = Name::new("plan", "");
    let voters_told = |voting: &Voting| match state.store(&name, voting).err() {
        Some(StoreError::OtherVoters { voters, .. }) => Some(voters),
        None => None,
        other => panic!("{other:?}"),
    };
    let named = by_voters("a,b,c", None);
    // Nothing came of this start.
    assert_eq!(voters_told(&by_members()), None);
    let mut store = state.store(&name, &named).unwrap();
    let member = MemberId { prefix: GuidPrefix([1; 12]), nonce: 1 };
    let decision = Decision::first(9, [(member, atomic::Storage::Durable)], &named.voters());
    let mut batch = Batch::new();
    Change::<Arc<Entry>>::View(Box::new(decision.next), 0).stage(&mut batch);
    store.commit(&batch).unwrap();
    let file = store.file().to_owned();
    drop(store);
    for _ in 0..2 {
        assert_eq!(voters_told(&by_members()).as_deref(), Some("a,b,c"));
        assert_eq!(voters_told(&by_voters("a,b,d", Some("a"))).as_deref(), Some("a,b,c"));
        FileStore::open(&file).unwrap().say_group(Default::default()).unwrap();
    }
    assert_eq!(voters_told(&by_voters("a,b,c", Some("a"))), None);
}

struct Put(u64, usize);

impl Stage for Put {
    fn stage(self, batch: &mut Batch) {
        batch.insert(self.0.to_be_bytes().to_vec(), Some(vec![0; self.1]));
    }
}

#[test]
fn what_waits_is_made_durable_together_within_limits_and_in_order() {
    let (slow, thread) = (Slow::default(), StoreThread::start(0).unwrap());
    let (tell, told) = mpsc::channel();
    let committer = thread.committer(Box::new(slow.clone()), move |done| tell.send(done.unwrap()).unwrap());
    for number in 1..=600 {
        committer.push(number, Put(number, 8));
    }
    for number in 601..=603 {
        committer.push(number, Put(number, 600 << 10));
    }
    slow.0.0.lock().unwrap().may_go = true;
    slow.0.1.notify_all();
    // At the end everything is done.
    drop(thread);
    drop(committer);
    let told: Vec<u64> = told.try_iter().collect();
    assert_eq!(told.last(), Some(&603));
    assert!(told.is_sorted() && told.len() < 9, "{told:?}");
    let commits = slow.0.0.lock().unwrap().commits.clone();
    assert!(commits.iter().all(|&count| count <= 256), "{commits:?}");
    assert!(commits.contains(&256), "{commits:?}");
    assert_eq!(*commits.last().unwrap(), 1, "two of the long ones are more than a commit takes: {commits:?}");
}

#[test]
fn who_ends_in_good_order_waits_for_what_is_not_durable_yet_but_not_for_ever() {
    let (slow, thread) = (Slow::default(), StoreThread::start(0).unwrap());
    let committer = thread.committer(Box::new(slow.clone()), |done| assert!(done.is_ok()));
    (1..=600).for_each(|number| committer.push(number, Put(number, 8)));
    committer.drain(Duration::from_millis(20));
    assert_eq!(slow.0.0.lock().unwrap().commits.iter().sum::<usize>(), 0, "the disk does nothing");
    slow.0.0.lock().unwrap().may_go = true;
    slow.0.1.notify_all();
    committer.drain(Duration::from_secs(60));
    drop(committer);
    assert_eq!(slow.0.0.lock().unwrap().commits.iter().sum::<usize>(), 600);
}

#[test]
fn an_error_of_the_store_is_told_once_and_other_groups_go_on() {
    let (slow, other, thread) = (Slow::default(), Slow::default(), StoreThread::start(0).unwrap());
    *slow.0.0.lock().unwrap() = Seen { may_go: true, fails: true, ..Seen::default() };
    other.0.0.lock().unwrap().may_go = true;
    let (tell, told) = mpsc::channel();
    let committer = thread.committer(Box::new(slow.clone()), move |done| tell.send(done).unwrap());
    committer.push(1, Put(1, 8));
    assert!(matches!(told.recv().unwrap(), Err(StoreError::DiskFull { .. })));
    committer.push(2, Put(2, 8));
    let (tell, told_other) = mpsc::channel();
    let committer = thread.committer(Box::new(other), move |done| tell.send(done).unwrap());
    committer.push(7, Put(7, 8));
    assert_eq!(told_other.recv().unwrap().unwrap(), 7);
    drop(thread);
    assert!(told.try_recv().is_err(), "nothing more is told");
    assert_eq!(slow.0.0.lock().unwrap().commits, [1]);
}

/// With the feature for tests of whole processes: `cargo test -p plainsong --lib --features power-loss`.
#[cfg(feature = "power-loss")]
mod killed {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    use redb::StorageBackend;

    use super::*;

    /// In the environment of the process that is killed: the directory that it writes to.
    const DIRECTORY: &str = "PLAINSONG_TEST_DIRECTORY";

    fn start(test: &str, directory: &Directory, seed: u64) -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &format!("atomic::storage::tests::killed::{test}"), "--nocapture"]);
        command.env(DIRECTORY, &directory.0).env("PLAINSONG_POWER_LOSS", seed.to_string());
        command.stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Each number stands in several keys, which are written together.
    fn batch(number: u64) -> Batch {
        let value = number.to_be_bytes().repeat(1 + (number * 97 % 300) as usize);
        (0..5_u64).map(|key| (key.to_be_bytes().to_vec(), Some(value.clone()))).collect()
    }

    fn last_of(store: &dyn Store) -> u64 {
        let map = all_of(store);
        let Some(value) = map.values().next() else { return 0 };
        let number = u64::from_be_bytes(value[..8].try_into().unwrap());
        assert_eq!(made(&Map::new(), &batch(number)), map, "the last batch is whole");
        number
    }

    #[test]
    fn a_process_that_is_killed_loses_nothing_that_it_had_committed() {
        const TEST: &str = "a_process_that_is_killed_loses_nothing_that_it_had_committed";
        let open = |path: &Path| StateDirectory::open(path, 0).unwrap();
        let name = Name::new("plan", "");
        if let Some(path) = std::env::var_os(DIRECTORY) {
            let state = open(Path::new(&path));
            let mut store = state.store(&name, &by_members()).unwrap();
            for number in last_of(&*store) + 1.. {
                store.commit(&batch(number)).unwrap();
                writeln!(std::io::stdout(), "committed {number}").unwrap();
            }
        }
        let directory = Directory::new("killed");
        let mut committed = 0;
        for seed in 0..25 {
            let mut child = start(TEST, &directory, seed + 1);
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
            let numbers = lines.by_ref().filter_map(|it| it.strip_prefix("committed ")?.parse::<u64>().ok());
            // It writes on while it is told to die.
            committed = numbers.take(1 + seed as usize % 7).last().unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
            let rest = lines.filter_map(|it| it.strip_prefix("committed ")?.parse::<u64>().ok());
            committed = rest.last().unwrap_or(committed);
            let state = open(&directory.0);
            let kept = last_of(&*state.store(&name, &by_members()).unwrap());
            assert!(kept == committed || kept == committed + 1, "seed {seed}: {kept} of {committed}");
        }
        assert!(committed >= 25, "{committed}");
    }

    #[test]
    fn a_process_that_is_killed_loses_some_of_what_was_not_synced() {
        const TEST: &str = "a_process_that_is_killed_loses_some_of_what_was_not_synced";
        const SECTORS: usize = 64;
        if let Some(path) = std::env::var_os(DIRECTORY) {
            let file =
                std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap();
            let file = lossy::backend(file).unwrap();
            file.write(0, &[1; SECTORS * 512]).unwrap();
            file.sync_data().unwrap();
            (0..SECTORS as u64).for_each(|sector| file.write(sector * 512, &[2; 512]).unwrap());
            writeln!(std::io::stdout(), "written").unwrap();
            loop {
                std::thread::park();
            }
        }
        let directory = Directory::new("unsynced");
        let mut child = start(TEST, &directory, 5);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.into_iter().any(|line| line.contains("written")));
        child.kill().unwrap();
        child.wait().unwrap();
        let octets = std::fs::read(&directory.0).unwrap();
        let _ = std::fs::remove_file(&directory.0);
        assert_eq!(octets.len(), SECTORS * 512);
        let new = octets.chunks(512).filter(|sector| **sector == [2; 512]).count();
        assert!((1..SECTORS).contains(&new), "{new} of the new sectors are there");
    }
}
