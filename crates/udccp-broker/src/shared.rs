//! The shared memory that carries one connection's messages.

use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use udccp_preload::ring::{BrokerRing, RING_BYTES};

/// A ring with its file, whose descriptor is passed to programs.
#[derive(Debug)]
pub(crate) struct SharedRing {
    ring: BrokerRing,
    file: OwnedFd,
}

impl SharedRing {
    /// Creates an empty ring for a program's end.
    pub(crate) fn new(cookie: u64) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("udccp-ring", flags)?;
        rustix::fs::ftruncate(&file, RING_BYTES as u64)?;
        // If a program could truncate the file, the broker's next access would kill it.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals)?;
        Ok(Self { ring: BrokerRing::map(file.as_fd(), cookie)?, file })
    }

    /// The descriptor for programs.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Deref for SharedRing {
    type Target = BrokerRing;

    fn deref(&self) -> &BrokerRing {
        &self.ring
    }
}

impl Drop for SharedRing {
    fn drop(&mut self) {
        // Frees the memory now: programs keep the mapping until they need its address again.
        let all = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = rustix::fs::fallocate(&self.file, all, 0, RING_BYTES as u64);
    }
}
