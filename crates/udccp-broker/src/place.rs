//! Finds and checks the broker's folder: private to the user, with one socket for each network
//! namespace.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, StatVfsMountFlags, flock, statvfs};

/// The folder for the user of this process: `XDG_RUNTIME_DIR/udccp`, or `/tmp/udccp-UID`. It is
/// created with mode 0700, whatever the umask.
///
/// # Errors
/// The folder cannot be created, another user can write to it, or libraries in it cannot be loaded.
pub fn folder() -> io::Result<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // With `sudo`, the variable may name another user's folder.
    let own = runtime.filter(|dir| dir.metadata().is_ok_and(|m| m.is_dir() && m.uid() == uid));
    let folder = own.map_or_else(|| format!("/tmp/udccp-{uid}").into(), |dir| dir.join("udccp"));
    match DirBuilder::new().mode(0o700).create(&folder) {
        Ok(()) => std::fs::set_permissions(&folder, Permissions::from_mode(0o700))?,
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        Err(_) => {}
    }
    check(&folder)?;
    if is_noexec(&folder)? {
        let text = format!("{} is on a file system mounted noexec", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(folder)
}

/// Whether the dynamic linker may not load libraries from there.
fn is_noexec(folder: &Path) -> io::Result<bool> {
    Ok(statvfs(folder)?.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// Longest path of a Unix socket in bytes.
const LONGEST: usize = 107;

/// Refuses a folder that another user owns or can enter, or its owner cannot, one whose path is too
/// long for the sockets in it, and one whose path LD_PRELOAD would split.
///
/// # Errors
/// The folder is refused.
pub fn check(folder: &Path) -> io::Result<()> {
    // The kernel numbers namespaces with 32 bits.
    let longest = folder.join(format!("net-{}.sock", u32::MAX));
    if longest.as_os_str().len() > LONGEST {
        let text = format!("the path {} is too long for a socket in it", folder.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    if folder.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b' ' | b':')) {
        let text = format!("the path {} has a space or a colon", folder.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let status = folder.symlink_metadata()?;
    let uid = rustix::process::geteuid().as_raw();
    if !status.is_dir() || status.uid() != uid || status.mode() & 0o777 != 0o700 {
        let text = format!("{} must be a folder of this user with mode 0700", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(())
}

/// The number of this process's network namespace, or 0 without /proc.
pub fn network_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/net").map_or(0, |status| status.ino())
}

/// The path of the socket for requests.
pub fn socket(folder: &Path) -> PathBuf {
    folder.join(format!("net-{}.sock", network_namespace()))
}

/// Claims the namespace for this process, or returns `None` if another broker holds it. The claim
/// lasts until the file is closed, at the latest when the process ends.
pub(crate) fn claim(folder: &Path) -> io::Result<Option<File>> {
    let path = folder.join(format!("net-{}.lock", network_namespace()));
    let mut options = OpenOptions::new();
    let lock = options.create(true).truncate(false).write(true).mode(0o600).open(path)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(lock)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(e) => Err(e.into()),
    }
}
