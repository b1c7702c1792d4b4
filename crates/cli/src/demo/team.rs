//! The demo's child processes, and what they last reported.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Result};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Options;

/// Where a subscriber saw a shape last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seen {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) size: f64,
}

/// What a subscriber process reports.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) process: u32,
    pub(super) shapes: BTreeMap<String, Seen>,
    pub(super) samples_per_second: f64,
    pub(super) latency_p50_us: f64,
    pub(super) latency_p99_us: f64,
    pub(super) writers: u32,
}

/// The processes of one demo.
pub(super) struct Team {
    children: Vec<Child>,
    views: Vec<Arc<Mutex<View>>>,
    publisher: u32,
}

impl Team {
    /// Starts one publisher and the subscribers.
    pub(super) fn start(options: &Options) -> Result<Self> {
        let mut team = Self { children: Vec::new(), views: Vec::new(), publisher: 0 };
        // Subscribers first: they see the first sample of the publisher.
        for _ in 0..options.subscribers {
            let (process, output) = team.spawn(options, "subscriber")?;
            let view = Arc::new(Mutex::new(View { process, ..View::default() }));
            team.views.push(Arc::clone(&view));
            std::thread::Builder::new().name("reports".into()).spawn(move || follow(output, &view))?;
        }
        (team.publisher, _) = team.spawn(options, "publisher")?;
        Ok(team)
    }

    /// What each subscriber reported last.
    pub(super) fn views(&self) -> Vec<View> {
        self.views.iter().map(|view| view.lock().unwrap_or_else(PoisonError::into_inner).clone()).collect()
    }

    /// Process id of the publisher.
    pub(super) const fn publisher(&self) -> u32 {
        self.publisher
    }

    /// Asks all children to end, and makes sure they do.
    pub(super) fn end(&mut self) {
        for child in &mut self.children {
            drop(child.stdin.take());
        }
        let deadline = Instant::now() + Duration::from_secs(3);
        for child in &mut self.children {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            if matches!(child.try_wait(), Ok(None)) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        self.children.clear();
    }

    fn spawn(&mut self, options: &Options, role: &str) -> Result<(u32, ChildStdout)> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["demo", "--role", role, "--topic", &options.topic])
            .args(["--domain", &options.domain.to_string(), "--rate", &options.rate.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().ok_or_else(|| std::io::Error::other("a child has no output"))?;
        let process = child.id();
        self.children.push(child);
        Ok((process, output))
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.end();
    }
}

fn follow(output: ChildStdout, view: &Mutex<View>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        view.lock().unwrap_or_else(PoisonError::into_inner).note(&line);
    }
}

impl View {
    /// Takes one report: `shape X Y SIZE COLOR` or `statistic RATE P50_NS P99_NS WRITERS`.
    fn note(&mut self, line: &str) {
        let mut words = line.splitn(5, ' ');
        let kind = words.next();
        let mut number = || words.next().and_then(|word| word.parse::<f64>().ok()).unwrap_or_default();
        match kind {
            Some("shape") => {
                let seen = Seen { x: number(), y: number(), size: number() };
                let color = words.next().unwrap_or_default();
                // Colours come from anyone on the topic: show a handful.
                const COLORS_MAX: usize = 16;
                if self.shapes.len() < COLORS_MAX || self.shapes.contains_key(color) {
                    self.shapes.insert(color.to_owned(), seen);
                }
            }
            Some("statistic") => {
                self.samples_per_second = number();
                self.latency_p50_us = number() / 1000.0;
                self.latency_p99_us = number() / 1000.0;
                self.writers = number() as u32;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_become_a_view() {
        let mut view = View::default();
        view.note("shape 10 20 30 LIGHT BLUE");
        view.note("statistic 299 41000 95500 2");
        view.note("nonsense");
        assert_eq!(view.shapes["LIGHT BLUE"], Seen { x: 10.0, y: 20.0, size: 30.0 });
        assert_eq!((view.samples_per_second, view.writers), (299.0, 2));
        assert_eq!((view.latency_p50_us, view.latency_p99_us), (41.0, 95.5));
    }
}
