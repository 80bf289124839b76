//! Shared memory in which programs read the state of their sockets without a request.
//!
//! The broker writes with `pwrite`, field by field; programs get a read-only descriptor.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use rustix::fs::{MemfdFlags, Mode, OFlags};
use udccp_preload::protocol::*;

/// The region of this broker.
#[derive(Debug)]
pub(crate) struct Region {
    file: OwnedFd,
    for_programs: OwnedFd,
    key: u64,
    free: Mutex<Vec<usize>>,
}

impl Region {
    /// Creates an empty region.
    pub(crate) fn new() -> io::Result<Self> {
        let file = rustix::fs::memfd_create("udccp", MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&file, REGION_BYTES as u64)?;
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let for_programs = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut key = [0; 8];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        let region = Self {
            file,
            for_programs,
            key: u64::from_ne_bytes(key),
            free: Mutex::new((0..SLOTS).rev().collect()),
        };
        region.write(REGION_MAGIC_AT, &(u64::from(MAGIC) | u64::from(VERSION) << 32).to_ne_bytes());
        let charge = crate::pair::frame_charge()? as u32;
        region.write(REGION_CHARGE_AT, &charge.to_ne_bytes());
        region.write(REGION_KEY_AT, &region.key.to_ne_bytes());
        Ok(region)
    }

    /// The key at the start of frames.
    pub(crate) const fn key(&self) -> u64 {
        self.key
    }

    /// The descriptor for programs.
    pub(crate) fn for_programs(&self) -> BorrowedFd<'_> {
        self.for_programs.as_fd()
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        // The write goes to memory, so it fails only if the machine has none left.
        if let Err(e) = rustix::io::pwrite(&self.file, bytes, at as u64) {
            tracing::error!("cannot write to the shared region: {e}");
        }
    }

    /// Takes a free slot, or returns `None` if all are in use.
    pub(crate) fn take(&self) -> Option<usize> {
        self.free.lock().expect("never poisoned").pop()
    }

    /// Gives a slot back.
    pub(crate) fn free(&self, slot: usize) {
        self.write(REGION_HEADER + slot * SLOT_BYTES, &[0; SLOT_BYTES]);
        self.free.lock().expect("never poisoned").push(slot);
    }

    /// Writes a number of a slot.
    pub(crate) fn set(&self, slot: usize, at: usize, value: u32) {
        self.write(REGION_HEADER + slot * SLOT_BYTES + at, &value.to_ne_bytes());
    }

    /// Sets the owner of a slot.
    pub(crate) fn set_cookie(&self, slot: usize, cookie: u64) {
        let at = REGION_HEADER + slot * SLOT_BYTES + SLOT_COOKIE_AT;
        self.write(at, &cookie.to_ne_bytes());
    }

    /// Writes an address of a slot.
    pub(crate) fn set_address(&self, slot: usize, at: usize, address: &[u8]) {
        let mut bytes = [0; 4 + ADDRESS_BYTES];
        let len = address.len().min(ADDRESS_BYTES);
        bytes[..4].copy_from_slice(&(len as u32).to_ne_bytes());
        bytes[4..4 + len].copy_from_slice(&address[..len]);
        self.write(REGION_HEADER + slot * SLOT_BYTES + at, &bytes);
    }

    #[cfg(test)]
    fn read(&self, at: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        rustix::io::pread(&self.for_programs, &mut bytes, at as u64).unwrap();
        bytes
    }
}

/// The broker's lock, held while it runs.
#[derive(Debug)]
pub(crate) struct Claim(
    #[expect(dead_code, reason = "its descriptor is the lock")] pub(crate) File,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_read_what_the_broker_writes_and_cannot_write() {
        let region = Region::new().unwrap();
        let slot = region.take().unwrap();
        region.set(slot, SLOT_MPS_AT, 1400);
        assert_eq!(region.read(REGION_HEADER + SLOT_MPS_AT, 4), 1400u32.to_ne_bytes());
        assert!(rustix::io::pwrite(region.for_programs(), b"x", 0).is_err());
        region.free(slot);
        assert_eq!(region.read(REGION_HEADER, SLOT_BYTES), [0; SLOT_BYTES]);
    }
}
