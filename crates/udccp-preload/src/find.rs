//! Finds out whether a descriptor is a DCCP socket, and reads the state that the broker publishes.
//!
//! Nothing here allocates or locks: calls may come from signal handlers and forked children.

use core::ffi::c_int;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::abi::*;
use crate::protocol::*;
use crate::{rpc, sys};

/// Most broker regions that a process can map: each broker that dies is followed by another.
const REGIONS: usize = 16;
/// Slots of all regions.
pub const PLACES: usize = REGIONS * SLOTS;
/// Entries of the cache of sockets, DCCP and others, indexed by cookie. Sockets that collide are
/// looked up again.
const REMEMBERED: usize = 4096;
/// In place of a slot: the socket is not a DCCP socket.
const FOREIGN: usize = PLACES;
/// Bits of the place in an entry. The higher bits are the cookie.
const PLACE_BITS: u32 = usize::BITS - FOREIGN.leading_zeros();

static MAPPED: [AtomicPtr<u8>; REGIONS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; REGIONS];
/// The cache. An entry holds both cookie and place in one number, so that threads or signal
/// handlers that write the same entry never mix those of two sockets.
static ENTRIES: [AtomicU64; REMEMBERED] = [const { AtomicU64::new(0) }; REMEMBERED];
/// Sockets whose broker's death has been reported to the program; indexed by cookie, like the
/// cache.
static REPORTED: [AtomicU8; REMEMBERED] = [const { AtomicU8::new(0) }; REMEMBERED];

/// A DCCP socket of this program.
#[derive(Clone, Copy, Debug)]
pub struct Socket {
    /// The descriptor by which it was found.
    pub fd: c_int,
    /// The kernel's number for it (SO_COOKIE).
    pub cookie: u64,
    /// The index of its slot among those of all regions, less than [`PLACES`].
    pub place: usize,
    slot: *const u8,
    region: *const u8,
}

/// The DCCP socket behind a descriptor, if it is one.
pub fn socket(fd: c_int) -> Option<Socket> {
    let cookie: u64 = sys::option(fd, SOL_SOCKET, SO_COOKIE).ok()?;
    if let Some(place) = cached(cookie) {
        return known(fd, cookie, place);
    }
    look_up(fd, cookie)
}

fn known(fd: c_int, cookie: u64, place: usize) -> Option<Socket> {
    let region = MAPPED.get(place / SLOTS)?.load(Ordering::Acquire).cast_const();
    if region.is_null() {
        return None;
    }
    // SAFETY: the region has SLOTS slots, and is never unmapped.
    let slot = unsafe { region.add(REGION_HEADER + place % SLOTS * SLOT_BYTES) };
    let socket = Socket { fd, cookie, place, slot, region };
    (socket.cookie_of_slot() == cookie).then_some(socket)
}

/// The place of a cached socket, or [`FOREIGN`].
fn cached(cookie: u64) -> Option<usize> {
    let entry = ENTRIES[(cookie as usize) % REMEMBERED].load(Ordering::Acquire);
    (entry >> PLACE_BITS == cookie).then_some((entry & ((1 << PLACE_BITS) - 1)) as usize)
}

fn cache(cookie: u64, place: usize) {
    let entry = cookie << PLACE_BITS | place as u64;
    if entry >> PLACE_BITS != cookie {
        // The cookie is too large for an entry, so the socket is looked up each time.
        return;
    }
    let at = (cookie as usize) % REMEMBERED;
    REPORTED[at].store(0, Ordering::Release);
    ENTRIES[at].store(entry, Ordering::Release);
}

/// Looks up a socket that is not in the cache: inherited, or passed by another process.
fn look_up(fd: c_int, cookie: u64) -> Option<Socket> {
    let is_like_ours = sys::option(fd, SOL_SOCKET, SO_DOMAIN) == Ok(AF_UNIX)
        && sys::option(fd, SOL_SOCKET, SO_TYPE) == Ok(SOCK_SEQPACKET);
    let answer = if is_like_ours { rpc::call(Op::Attach, cookie, 0, 0, &[]) } else { Err(ENOENT) };
    match answer {
        Ok(answer) => adopt(fd, cookie, answer.reply.value),
        // The broker could not be reached; the next call tries again.
        Err(EMFILE | ENFILE) => None,
        Err(_) => {
            cache(cookie, FOREIGN);
            None
        }
    }
}

/// Caches a socket that the broker opened.
pub fn adopt(fd: c_int, cookie: u64, slot: i32) -> Option<Socket> {
    let slot = usize::try_from(slot).ok().filter(|slot| *slot < SLOTS)?;
    let find = || {
        (0..REGIONS)
            .map(|region| region * SLOTS + slot)
            .find(|place| known(fd, cookie, *place).is_some())
    };
    let place = find().or_else(|| {
        map_region();
        find()
    })?;
    cache(cookie, place);
    known(fd, cookie, place)
}

/// Maps the region of the running broker.
fn map_region() {
    let Ok(answer) = rpc::call(Op::Region, 0, 0, 0, &[]) else { return };
    let at = sys::map_to_read(answer.fd, REGION_BYTES).cast_mut();
    sys::close(answer.fd);
    if at.is_null() {
        return;
    }
    for place in &MAPPED {
        let null = core::ptr::null_mut();
        if place.compare_exchange(null, at, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return;
        }
    }
    // The oldest broker died long ago. From now on its sockets count as foreign.
    MAPPED[0].store(at, Ordering::Release);
}

impl Socket {
    fn number(&self, at: usize) -> u32 {
        // SAFETY: within the slot and aligned; the broker writes whole numbers.
        unsafe { &*self.slot.add(at).cast::<AtomicU32>() }.load(Ordering::Acquire)
    }

    fn cookie_of_slot(&self) -> u64 {
        // SAFETY: as above.
        unsafe { &*self.slot.add(SLOT_COOKIE_AT).cast::<AtomicU64>() }.load(Ordering::Acquire)
    }

    /// The key at the start of frames.
    pub fn key(&self) -> u64 {
        // SAFETY: the region's header, aligned.
        unsafe { &*self.region.add(REGION_KEY_AT).cast::<AtomicU64>() }.load(Ordering::Acquire)
    }

    /// One of the states of [`crate::protocol`].
    pub fn state(&self) -> u32 {
        self.number(SLOT_STATE_AT)
    }

    /// Largest message in bytes.
    pub fn max_message_size(&self) -> usize {
        (self.number(SLOT_MPS_AT) as usize).min(MAX_MESSAGE)
    }

    /// Whether an error is pending.
    pub fn has_error(&self) -> bool {
        self.number(SLOT_ERROR_AT) != 0
    }

    /// Whether a fault of Linux is to be copied.
    pub fn has_fault(&self, fault: u32) -> bool {
        self.number(SLOT_FAULTS_AT) & fault != 0
    }

    /// Whether the queue policy has priorities.
    pub fn has_priorities(&self) -> bool {
        self.number(SLOT_PRIO_AT) != 0
    }

    /// How many messages may be queued.
    pub fn queue(&self) -> u64 {
        self.number(SLOT_FRAMES_AT).into()
    }

    /// How many messages the kernel's queue has room for now.
    pub fn room(&self) -> usize {
        // SAFETY: the region's header, aligned.
        let charge = unsafe { &*self.region.add(REGION_CHARGE_AT).cast::<AtomicU32>() };
        let charge = charge.load(Ordering::Acquire).max(1);
        let held = sys::unread_bytes(self.fd).div_ceil(charge);
        self.number(SLOT_FRAMES_AT).saturating_sub(held) as usize
    }

    /// AF_INET or AF_INET6.
    pub fn family(&self) -> c_int {
        if self.number(SLOT_V6_AT) != 0 { AF_INET6 } else { AF_INET }
    }

    /// Copies the local or the peer's address. Returns its length, or 0 if there is none.
    pub fn address(&self, at: usize, into: &mut [u8; ADDRESS_BYTES]) -> usize {
        let len = (self.number(at) as usize).min(ADDRESS_BYTES);
        for (i, word) in into.chunks_exact_mut(4).enumerate() {
            word.copy_from_slice(&self.number(at + 4 + 4 * i).to_ne_bytes());
        }
        len
    }

    /// Takes the pending error from the broker, or 0 if there is none.
    pub fn take_error(&self) -> c_int {
        let error = self.number(SLOT_ERROR_AT);
        if error == 0 {
            return 0;
        }
        match rpc::call(Op::TakeError, self.cookie, 0, 0, &[]) {
            Ok(answer) => answer.reply.value,
            // The error stays pending, but the program sees it.
            Err(EMFILE | ENFILE) => error as c_int,
            Err(_) => 0,
        }
    }

    /// Whether the broker has died: its end is gone although the socket was in use.
    pub fn is_orphan(&self) -> bool {
        let was_in_use =
            matches!(self.state(), STATE_CONNECTING | STATE_OPEN | STATE_LISTENING | STATE_CLOSED);
        was_in_use
            && sys::poll(self.fd, 0, Some(TimeSpec::default())).is_ok_and(|e| e & POLLHUP != 0)
    }

    /// Returns true only the first time: whether to report the broker's death now.
    pub fn report_orphan(&self) -> bool {
        REPORTED[(self.cookie as usize) % REMEMBERED].swap(1, Ordering::AcqRel) == 0
    }

    /// Whether the descriptor still refers to this socket. Another thread may close it while a call
    /// waits, and its number may then be reused.
    pub fn is_there(&self) -> bool {
        sys::option(self.fd, SOL_SOCKET, SO_COOKIE) == Ok(self.cookie)
    }

    /// Waits until the socket is writable or has ended, like [`sys::wait_writable`].
    ///
    /// # Errors
    /// EINTR; EBADF if another thread has closed it meanwhile and its number may have been reused.
    pub fn wait_writable(&self, timeout: Option<TimeSpec>) -> Result<i16, c_int> {
        let ready = sys::wait_writable(self.fd, timeout)?;
        if self.is_there() { Ok(ready) } else { Err(EBADF) }
    }

    /// Whether calls block.
    pub fn is_blocking(&self, flags: c_int) -> bool {
        flags & MSG_DONTWAIT == 0 && sys::fcntl(self.fd, F_GETFL, 0) as c_int & O_NONBLOCK == 0
    }

    /// The socket's timeout for one direction; `None` waits for ever.
    pub fn timeout(&self, name: c_int) -> Option<TimeSpec> {
        let time: [i64; 2] = sys::option(self.fd, SOL_SOCKET, name).ok()?;
        (time != [0, 0]).then_some(TimeSpec { sec: time[0], nsec: time[1] * 1000 })
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Regression: cookie and place were two numbers, and a socket could get another one's place.
    #[test]
    fn sockets_cached_in_one_slot_are_never_mixed_up() {
        const THREADS: u64 = 4;
        let cookie = |n: u64| 7 + n * REMEMBERED as u64;
        let place = |n: u64| if n == 0 { FOREIGN } else { n as usize };
        let one = |n: u64| {
            for turn in 0..200_000 {
                cache(cookie(n), place(n));
                for other in 0..THREADS {
                    let found = cached(cookie(other));
                    assert!(found.is_none_or(|f| f == place(other)), "{turn}: {other} {found:?}");
                }
            }
        };
        thread::scope(|s| (0..THREADS).for_each(|n| drop(s.spawn(move || one(n)))));
    }

    #[test]
    fn oversized_cookies_are_not_cached() {
        let most = u64::MAX >> PLACE_BITS;
        cache(most, PLACES - 1);
        assert_eq!(cached(most), Some(PLACES - 1));
        cache(u64::MAX, 1);
        assert_eq!(cached(u64::MAX), None);
        assert_eq!(cached(most), Some(PLACES - 1), "it is at the same place");
    }
}
