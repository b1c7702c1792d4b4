//! What an idle participant with ten endpoints costs. Started twice, they match and share memory.

use std::time::Duration;

use plainsong::Result;
use plainsong::prelude::*;

use super::{Measured, Options, failed, io};

/// What the process may have resident, the pages of its binary and of the C library included.
const RESIDENT_KB_MAX: u64 = 8 << 10;

pub(super) fn measure(options: &Options, duration: Duration) -> Result<()> {
    let participant = DomainParticipant::new(options.domain)?;
    let publisher = participant.create_publisher(QosSet::default())?;
    let subscriber = participant.create_subscriber(QosSet::default())?;
    let (mut writers, mut readers) = (Vec::new(), Vec::new());
    for index in 0..5 {
        let topic = participant.create_topic::<Measured>(&format!("Idle{index}"), QosSet::default())?;
        writers.push(publisher.create_writer(&topic, QosSet::writer())?);
        readers.push(subscriber.create_reader(&topic, QosSet::reader().reliable())?);
    }
    // Discovery and first allocations are over.
    std::thread::sleep(Duration::from_secs(2));
    let before = processor_ticks()?;
    std::thread::sleep(duration);
    let ticks = processor_ticks()? - before;
    // The kernel reports processor time in ticks of 10 ms on every architecture of Linux.
    let percent = ticks as f64 * 10.0 / duration.as_millis() as f64 * 100.0;
    let resident_kb = resident_kb()?;
    println!(
        "endpoints {} rss_kb {resident_kb} own_kb {} threads {} idle_cpu_percent {percent:.3} over_s {}",
        writers.len() + readers.len(),
        status("RssAnon:")?,
        threads()?,
        duration.as_secs()
    );
    if options.strict && resident_kb > RESIDENT_KB_MAX {
        return Err(failed(format!("it has {resident_kb} KiB resident, not {RESIDENT_KB_MAX} at most")));
    }
    Ok(())
}

/// Resident memory of this process in KiB.
pub(super) fn resident_kb() -> Result<u64> {
    status("VmRSS:")
}

/// Threads of this process.
pub(super) fn threads() -> Result<u64> {
    status("Threads:")
}

fn status(field: &str) -> Result<u64> {
    let status = read("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    Ok(line.split_whitespace().nth(1).and_then(|value| value.parse().ok()).unwrap_or(0))
}

/// User and system time of this process, in clock ticks.
fn processor_ticks() -> Result<u64> {
    let stat = read("/proc/self/stat")?;
    // The second field is the name in parentheses, which may hold spaces: count after it.
    let after = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<_> = after.split_whitespace().collect();
    Ok([11, 12].iter().filter_map(|index| fields.get(*index)?.parse::<u64>().ok()).sum())
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(path).map_err(|source| io(path, source))
}
