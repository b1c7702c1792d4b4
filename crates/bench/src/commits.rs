//! How fast changes become durable: by the database in which ATOMIC groups keep what must outlive them, and
//! by appending the same octets to a file and syncing it, which nothing that is durable can beat by much.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use redb::{Database, TableDefinition};

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("bench");
/// Octets of a value, and values a commit.
const CASES: [(usize, usize); 2] = [(128, 256), (8 << 10, 16)];

/// Takes turns, so that both meet the same disk, and prints commits a second.
pub(crate) fn measure(duration: Duration) -> io::Result<()> {
    let folder = std::env::current_dir()?.join(format!("bench-commits-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let measured = CASES.iter().try_for_each(|&case| compare(&folder, case, duration));
    std::fs::remove_dir_all(&folder)?;
    measured
}

fn compare(folder: &Path, (bytes, values): (usize, usize), duration: Duration) -> io::Result<()> {
    let database = Database::create(folder.join(format!("{bytes}.redb"))).map_err(io::Error::other)?;
    let mut file = File::create(folder.join(format!("{bytes}.log")))?;
    let value: Vec<u8> = (0..bytes).map(|index| (index * 7) as u8).collect();
    let (mut next, mut octets) = (0_u64, Vec::new());
    let mut commit = || -> Result<(), redb::Error> {
        let begun = database.begin_write()?;
        {
            let mut table = begun.open_table(TABLE)?;
            for _ in 0..values {
                table.insert(next.to_be_bytes().as_slice(), value.as_slice())?;
                next += 1;
            }
        }
        Ok(begun.commit()?)
    };
    let mut append = || {
        octets.clear();
        (0..values as u64).for_each(|number| {
            octets.extend(number.to_be_bytes());
            octets.extend(&value);
        });
        file.write_all(&octets)?;
        file.sync_data()
    };
    let (mut in_database, mut in_file) = (Vec::new(), Vec::new());
    let end = Instant::now() + duration;
    while Instant::now() < end {
        in_database.push(timed(&mut || commit().map_err(io::Error::other))?);
        in_file.push(timed(&mut append)?);
    }
    let database = summary(&mut in_database);
    let file = summary(&mut in_file);
    let ratio = database.mean.as_secs_f64() / file.mean.as_secs_f64();
    println!("{values} values of {bytes} octets a commit, {} commits of each", in_file.len());
    for (name, it) in [("redb", &database), ("append and sync", &file)] {
        let per_second = values as f64 / it.mean.as_secs_f64();
        println!("  {name:15} {per_second:8.0} values/s, p50 {:?}, p99 {:?}", it.median, it.p99);
    }
    println!("  redb takes {ratio:.1} times as long");
    Ok(())
}

struct Summary {
    mean: Duration,
    median: Duration,
    p99: Duration,
}

fn summary(times: &mut [Duration]) -> Summary {
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    let mean = times.iter().sum::<Duration>() / times.len().max(1) as u32;
    Summary { mean, median: at(50), p99: at(99) }
}

fn timed(work: &mut impl FnMut() -> io::Result<()>) -> io::Result<Duration> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed())
}
