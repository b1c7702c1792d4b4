//! `plainsong perf calibrate`: the floors of this machine, which no product can be below.
//!
//! Each figure is the median of at least five runs. Two threads talk where two parties are needed, each on a
//! CPU of its own if there are two. Traffic stays on loopback.

mod calls;
mod distance;
mod pairs;
mod sockets;
mod table;

use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;

use clap::Args;
use plainsong_perfkit::floor::system::{allowed_cpus, pin_to_cpu};
use plainsong_perfkit::recorder;

pub(crate) use self::distance::cores_apart_ns;
use super::results::{Calibration, Floor};
use crate::output::{self, say};

/// Payloads of round trips, in octets.
const ROUND_TRIPS: [u64; 6] = [16, 64, 1024, 8192, 16_384, 65_000];
/// Payloads of datagrams that flow.
const FLOWS: [u64; 3] = [16, 1024, 8192];
/// Octets that are copied.
const COPIES: [u64; 5] = [100, 1024, 64 << 10, 1 << 20, 256 << 20];
/// Runs of which the median is taken.
const RUNS: usize = 5;

/// Options of `plainsong perf calibrate`.
#[derive(Args)]
pub(crate) struct Options {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> ExitCode {
    let measured = measure(|what| {
        if !options.json {
            eprintln!("measuring {what}");
        }
    });
    let (calibration, cpus) = match measured {
        Ok(measured) => measured,
        Err(error) => {
            eprintln!("cannot calibrate: {error}");
            return ExitCode::FAILURE;
        }
    };
    if !options.json {
        output::print(format_args!("{}", table::text(&calibration, cpus)));
        return ExitCode::SUCCESS;
    }
    match serde_json::to_string_pretty(&calibration) {
        Ok(text) => say!("{text}"),
        Err(error) => {
            eprintln!("cannot print JSON: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The CPUs that the two parties run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cpus {
    /// One each.
    Two(usize, usize),
    /// There is only one: nobody is pinned, and whoever spins yields.
    One,
}

impl Cpus {
    fn here() -> Self {
        match allowed_cpus()[..] {
            [first, second, ..] => Self::Two(first, second),
            _ => Self::One,
        }
    }

    /// Puts this thread on the CPU of the first or second party.
    fn pin(self, second: bool) {
        if let Self::Two(one, other) = self {
            // Without the right to choose, it runs where the kernel puts it.
            let _ = pin_to_cpu(if second { other } else { one });
        }
    }

    /// What a spinning thread does.
    fn relax(self) {
        match self {
            Self::Two(..) => std::hint::spin_loop(),
            Self::One => std::thread::yield_now(),
        }
    }
}

/// Measures all floors, in about 15 s; `progress` is told what comes next.
///
/// # Errors
/// A socket or pipe cannot be made.
pub(crate) fn measure(mut progress: impl FnMut(&str) + Send) -> Result<(Calibration, Cpus), String> {
    let cpus = Cpus::here();
    let work = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            cpus.pin(false);
            measure_pinned(cpus, &mut progress)
        });
        worker.join().map_err(|_| "the measuring thread panicked".to_owned())
    });
    work?.map(|calibration| (calibration, cpus)).map_err(|error| error.to_string())
}

fn measure_pinned(cpus: Cpus, progress: &mut impl FnMut(&str)) -> io::Result<Calibration> {
    progress("calls");
    let mut calibration = Calibration {
        clock_read_ns: median(calls::clock_read_ns),
        recorder_ns: median(recorder::cost_ns),
        system_call_ns: median(calls::system_call_ns),
        timer_slack_ns: median(calls::timer_slack_ns),
        ..Calibration::default()
    };
    progress("copies");
    for size in COPIES.into_iter().filter(|size| calls::has_memory_for(*size)) {
        calibration.memcpy_octets_per_s.insert(size, calls::memcpy_octets_per_s(size));
    }
    progress("wake-ups");
    calibration.spin_round_trip_ns = median_floor(|| Ok(pairs::spin(cpus)))?.p50;
    calibration.futex_wakeup_round_trip_ns = median_floor(|| Ok(pairs::futex(cpus)))?.p50;
    calibration.pipe_wakeup_round_trip_ns = median_floor(|| pairs::pipe(cpus))?.p50;
    progress("round trips of sockets");
    calibration.udp_sendto_ns =
        median_of((0..RUNS).map(|_| sockets::sendto_ns()).collect::<io::Result<_>>()?);
    let by_size = |run: fn(Cpus, u64) -> io::Result<Vec<u64>>| {
        let each = |size: u64| Ok((size, median_floor(|| run(cpus, size))?));
        ROUND_TRIPS.into_iter().map(each).collect::<io::Result<BTreeMap<u64, Floor>>>()
    };
    calibration.udp_round_trip_ns = by_size(|cpus, size| sockets::udp(cpus, size, false))?;
    calibration.udp_busy_round_trip_ns = by_size(|cpus, size| sockets::udp(cpus, size, true))?;
    calibration.unix_round_trip_ns = by_size(sockets::unix)?;
    progress("flows of datagrams");
    for size in FLOWS {
        let single = (0..RUNS).map(|_| sockets::flow(cpus, size, false)).collect::<io::Result<_>>()?;
        calibration.udp_datagrams_per_s.insert(size, median_of(single));
        // A kernel without the offload has no such figure.
        if let Ok(runs) = (0..RUNS).map(|_| sockets::flow(cpus, size, true)).collect::<io::Result<_>>() {
            calibration.udp_gso_datagrams_per_s.insert(size, median_of(runs));
        }
    }
    Ok(calibration)
}

fn median(run: impl Fn() -> f64) -> f64 {
    median_of((0..RUNS).map(|_| run()).collect())
}

fn median_of(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Percentiles of each run's round trips, and of these the medians.
fn median_floor(run: impl Fn() -> io::Result<Vec<u64>>) -> io::Result<Floor> {
    let (mut p50, mut p99) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let mut times = run()?;
        times.sort_unstable();
        let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default() as f64;
        p50.push(at(50));
        p99.push(at(99));
    }
    Ok(Floor { p50: median_of(p50), p99: median_of(p99) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_the_median_of_the_percentiles_of_its_runs() {
        let runs = std::cell::Cell::new(0);
        let floor = median_floor(|| {
            runs.set(runs.get() + 1);
            Ok((0..100).map(|value| value + 1000 * runs.get()).collect())
        });
        assert_eq!(floor.expect("no sockets"), Floor { p50: 3050.0, p99: 3099.0 });
    }

    #[test]
    fn parties_answer_each_other() {
        for trips in [pairs::spin(Cpus::One), pairs::futex(Cpus::One), pairs::pipe(Cpus::One).expect("pipes")]
        {
            assert!(trips.len() > 1 && trips.iter().all(|time| *time > 0));
        }
    }
}
