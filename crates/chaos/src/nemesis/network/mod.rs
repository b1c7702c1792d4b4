//! Networks of its own for each process, joined by a switch in this process: links lose, delay, reorder,
//! duplicate and cut what is sent, as they are told. The kernel's own emulation (netem) is often missing.

mod kernel;
pub(crate) mod link;
pub(crate) mod switch;

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock::{now_ns, ns};
use crate::nemesis::network::kernel::{Namespace, open_tap};
use crate::nemesis::network::switch::{Switch, hardware_address};

/// The interface in each namespace.
pub(crate) const INTERFACE: &str = "tap0";
/// The longest frame, and more.
const FRAME_BYTES: usize = 1 << 14;
/// Frames of one port that are taken before others are looked at.
const BATCH: usize = 64;
/// So often the thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(10);
/// Frames that a device holds until they are taken.
const DEVICE_FRAMES: usize = 10_000;

/// The address of a port.
pub(crate) const fn address(port: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, port as u8 + 1)
}

/// The networks and the thread that carries frames between them.
pub(crate) struct Network {
    namespaces: Vec<Namespace>,
    switch: Arc<Mutex<Switch>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Network {
    /// So many networks, whose links lose nothing.
    ///
    /// # Errors
    /// What is missing.
    pub(crate) fn new(ports: usize, seed: u64) -> Result<Self, String> {
        let mut namespaces = Vec::new();
        let mut taps = Vec::new();
        for port in 0..ports {
            let made = Namespace::new().and_then(|namespace| {
                let tap = namespace.within(|| {
                    let tap = open_tap(INTERFACE)?;
                    set_up(port, ports)?;
                    Ok(tap)
                })?;
                Ok((namespace, tap))
            });
            let (namespace, tap) = made.map_err(|error| {
                format!("a network of its own: {error}; it needs root, /dev/net/tun and ip (iproute2)")
            })?;
            namespaces.push(namespace);
            taps.push(tap);
        }
        let switch = Arc::new(Mutex::new(Switch::new(ports, seed)));
        let ends = Arc::new(AtomicBool::new(false));
        let (carried, until) = (Arc::clone(&switch), Arc::clone(&ends));
        let thread = std::thread::spawn(move || carry(&taps, &carried, &until));
        Ok(Self { namespaces, switch, ends, thread: Some(thread) })
    }

    /// What the links do.
    pub(crate) fn switch(&self) -> MutexGuard<'_, Switch> {
        lock(&self.switch)
    }

    /// Does something in the network of a port.
    ///
    /// # Errors
    /// Those of the kernel, and of what is done.
    pub(crate) fn within<T: Send>(
        &self,
        port: usize,
        body: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        self.namespaces[port].within(body)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Gives the device of this namespace its addresses. Who has which hardware address is told, so that nothing
/// but the traffic itself crosses the links.
fn set_up(port: usize, ports: usize) -> io::Result<()> {
    let mut script = format!(
        "ip link set lo up\n\
         sysctl -qw net.ipv6.conf.{INTERFACE}.disable_ipv6=1 2>/dev/null || true\n\
         ip link set {INTERFACE} address {} txqueuelen {DEVICE_FRAMES} multicast on up\n\
         ip addr add {}/24 dev {INTERFACE}\n\
         ip route add 224.0.0.0/4 dev {INTERFACE}\n",
        text_of(hardware_address(port)),
        address(port),
    );
    for other in (0..ports).filter(|other| *other != port) {
        let (to, hardware) = (address(other), text_of(hardware_address(other)));
        script += &format!("ip neigh add {to} lladdr {hardware} dev {INTERFACE} nud permanent\n");
    }
    let output = Command::new("sh").args(["-ec", &script]).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

fn text_of(hardware_address: [u8; 6]) -> String {
    hardware_address.map(|octet| format!("{octet:02x}")).join(":")
}

/// Carries frames until it is to end.
fn carry(taps: &[File], switch: &Mutex<Switch>, ends: &AtomicBool) {
    // Processes under test are not to wait for the switch; who is not root runs it as others.
    let _ = rustix::process::nice(-15);
    let mut frame = vec![0; FRAME_BYTES];
    let mut has_frames = vec![true; taps.len()];
    while !ends.load(Ordering::Relaxed) {
        let mut switch = lock(switch);
        for (port, mut tap) in taps.iter().enumerate().filter(|(port, _)| has_frames[*port]) {
            for _ in 0..BATCH {
                let Ok(count) = tap.read(&mut frame) else { break };
                switch.receive(now_ns(), port, &frame[..count]);
            }
        }
        while let Some((port, frame)) = switch.arrived(now_ns()) {
            // A device that is down or full loses it, as networks do.
            let _ = (&taps[port]).write(&frame);
        }
        let next_ns = switch.next_ns();
        drop(switch);
        let wait_ns = next_ns.unwrap_or(u64::MAX).saturating_sub(now_ns()).min(ns(LOOK));
        let wait = Timespec { tv_sec: 0, tv_nsec: wait_ns as i64 };
        let mut waiting: Vec<PollFd<'_>> = taps.iter().map(|tap| PollFd::new(tap, PollFlags::IN)).collect();
        let _ = poll(&mut waiting, Some(&wait));
        let readable = waiting.iter().map(|it| it.revents().contains(PollFlags::IN));
        has_frames.iter_mut().zip(readable).for_each(|(has, is)| *has = is);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
