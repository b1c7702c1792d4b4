//! Disks that outlive processes: file systems of their own in memory, which can be full, and can be lost.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a disk holds: more than a cell writes.
const MEGABYTES: u64 = 512;
/// The file that takes the room away, and how much of it is written at once.
const BALLAST: &str = "ballast";
const BLOCK_BYTES: usize = 64 << 10;

/// The disk of one process after the other. It ends with this.
pub(crate) struct Disk {
    root: PathBuf,
    state: PathBuf,
}

impl Disk {
    /// An empty one.
    ///
    /// # Errors
    /// It cannot be mounted: only root may.
    pub(crate) fn new(number: usize) -> Result<Self, String> {
        let root = std::env::temp_dir().join(format!("disk-{number}"));
        fs::create_dir_all(&root).map_err(|error| of(&root, &error))?;
        let size = format!("size={MEGABYTES}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&root).status();
        match mounted {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("mounting a disk: {status}")),
            Err(error) => return Err(format!("mount (util-linux): {error}")),
        }
        let state = root.join("state");
        Ok(Self { root, state })
    }

    /// The state directory on it.
    pub(crate) fn path(&self) -> &Path {
        &self.state
    }

    /// Takes all room but so many octets.
    pub(crate) fn fill(&self, left: u64) -> Result<(), String> {
        let ballast = self.root.join(BALLAST);
        let filled = File::create(&ballast).and_then(|mut file| {
            while write_block(&mut file)? {}
            let bytes = file.metadata()?.len();
            file.set_len(bytes.saturating_sub(left))
        });
        filled.map_err(|error| of(&ballast, &error))
    }

    pub(crate) fn make_room(&self) -> Result<(), String> {
        remove(&self.root.join(BALLAST), |path| fs::remove_file(path))
    }

    /// Loses what is on it.
    pub(crate) fn clear(&self) -> Result<(), String> {
        remove(&self.state, |path| fs::remove_dir_all(path))
    }

    /// Copies what is on it to a folder.
    pub(crate) fn copy_to(&self, folder: &Path) -> Result<(), String> {
        let copied = Command::new("cp").arg("-r").arg(&self.state).arg(folder).status();
        match copied {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("copying {}: {status}", self.state.display())),
            Err(error) => Err(format!("cp: {error}")),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.root).status();
    }
}

/// Whether there was room.
fn write_block(file: &mut File) -> io::Result<bool> {
    match file.write_all(&[0; BLOCK_BYTES]) {
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(false),
        written => written.map(|()| true),
    }
}

fn remove(path: &Path, how: fn(&Path) -> io::Result<()>) -> Result<(), String> {
    match how(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(of(path, &error)),
        _ => Ok(()),
    }
}

fn of(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
