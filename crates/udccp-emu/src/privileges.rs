//! The privilege to create network namespaces, as root or as root of a user namespace.

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};

use crate::error::EmuError;
use crate::tun::DEVICE;
use udccp_netns::Host;

/// How often moving into a user namespace is tried, a millisecond apart.
const ATTEMPTS: u32 = 50;

/// Where the privilege comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privileges {
    /// The program has it already.
    Own,
    /// The program is root in a user namespace that it created.
    UserNamespace,
}

/// Gets the privilege to create network namespaces and TUN devices. If the program does not have
/// it, it moves into a new user namespace, which is only possible with a single thread.
///
/// # Errors
/// What is missing, and how to get it.
pub fn acquire() -> Result<Privileges, EmuError> {
    let found = acquire_namespaces()?;
    let tun = fs::OpenOptions::new().read(true).write(true).open(DEVICE);
    tun.map(|_| found).map_err(|error| EmuError::Tun { error })
}

/// Gets the privilege to create network namespaces only, which is enough for
/// [`Path::Netem`](crate::Path).
///
/// # Errors
/// What is missing, and how to get it.
pub fn acquire_namespaces() -> Result<Privileges, EmuError> {
    Ok(match Host::new() {
        Ok(_) => Privileges::Own,
        Err(_) => {
            enter_user_namespace()?;
            Host::new().map_err(|error| EmuError::Namespaces { error })?;
            Privileges::UserNamespace
        }
    })
}

fn enter_user_namespace() -> Result<(), EmuError> {
    let (user, group) = (getuid(), getgid());
    let refused = |error: Errno| EmuError::UserNamespace { error: error.into() };
    let mut moved = unshare(CloneFlags::CLONE_NEWUSER);
    // A thread that was just joined may still count.
    for _ in 0..ATTEMPTS {
        if moved != Err(Errno::EINVAL) {
            break;
        }
        #[expect(clippy::disallowed_methods, reason = "the kernel takes its time")]
        std::thread::sleep(core::time::Duration::from_millis(1));
        moved = unshare(CloneFlags::CLONE_NEWUSER);
    }
    moved.map_err(refused)?;
    let map = || -> io::Result<()> {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))
    };
    map().map_err(|error| EmuError::UserNamespace { error })
}
