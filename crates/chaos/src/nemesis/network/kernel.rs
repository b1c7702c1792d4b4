//! Network namespaces and the TAP devices in them.
#![allow(unsafe_code, reason = "unshare and the ioctl of TAP devices have no safe wrapper")]

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::OFlags;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// `TUNSETIFF`, and its flags `IFF_TAP | IFF_NO_PI`: frames of Ethernet, with nothing before them.
const SET_DEVICE: Opcode = opcode::write::<i32>(b'T', 202);
const WHOLE_FRAMES: i16 = 0x0002 | 0x1000;

/// `struct ifreq`, of which the ioctl takes name and flags.
#[repr(C)]
struct DeviceRequest {
    name: [u8; 16],
    flags: i16,
    rest: [u8; 22],
}

/// A network namespace; it ends with its last process, and with this.
pub(crate) struct Namespace(File);

impl Namespace {
    /// A new one, without any network but a loopback interface that is down.
    ///
    /// # Errors
    /// Those of the kernel: only root may.
    pub(crate) fn new() -> io::Result<Self> {
        on_own_thread(|| {
            // SAFETY: this thread alone is moved, and keeps its table of descriptors.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            File::open("/proc/thread-self/ns/net").map(Self)
        })
    }

    /// Does something within, on a thread of its own. Sockets that it opens and processes that it starts stay
    /// there.
    ///
    /// # Errors
    /// Those of the kernel, and of what is done.
    pub(crate) fn within<T: Send>(&self, body: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_own_thread(|| {
            move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))?;
            body()
        })
    }
}

fn on_own_thread<T: Send>(body: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let done = scope.spawn(body).join();
        done.unwrap_or_else(|_| Err(io::Error::other("panicked in a namespace")))
    })
}

/// A TAP device of that name in the namespace of this thread. It ends with the file, of which each read is a
/// frame that the device sends, each write one that it receives; neither waits.
///
/// # Errors
/// Those of the kernel; without `/dev/net/tun` there are no such devices.
pub(crate) fn open_tap(name: &str) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut request = DeviceRequest { name: [0; 16], flags: WHOLE_FRAMES, rest: [0; 22] };
    // The last octet stays 0.
    request.name[..15].iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
    let mut options = File::options();
    options.read(true).write(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
    let file = options.open("/dev/net/tun")?;
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq` of 40 octets, and keeps no pointer to it.
    unsafe { ioctl(&file, Updater::<SET_DEVICE, DeviceRequest>::new(&mut request)) }?;
    Ok(file)
}

const _: () = assert!(size_of::<DeviceRequest>() == 40);
