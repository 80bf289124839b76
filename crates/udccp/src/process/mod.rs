//! Handles forks and the end of the process.
//!
//! A kernel's sockets outlive their process: messages that `send` accepted are still sent, and the
//! peer learns of the end. These sockets live in the process, so the end of the process waits for
//! them, within limits.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError, TryLockError, Weak};
use std::time::Duration;

use crate::shared::Shared;

#[cfg(windows)]
mod windows;

/// Number of forks between the process that opened the first socket and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The sockets of this process and of its ancestors. Some may be closed already.
static IN_USE: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Added to the connections' linger time, for the start of a thread.
const SLACK: Duration = Duration::from_millis(500);

/// Identifies a process and tells it from its forked children: sockets opened before a fork belong
/// to the parent, and calls on them fail with [`Error::Forked`](crate::Error::Forked) in the child.
/// Bindings check this before they touch a lock, which may have been copied while another thread
/// held it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// The current process.
    #[must_use]
    pub fn current() -> Self {
        static WATCH: Once = Once::new();
        WATCH.call_once(watch);
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether it is the current process, and not an ancestor that forked.
    #[inline]
    #[must_use]
    pub fn is_current(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }
}

/// Registers handlers with the C library for forks and the end of the process. Asking the system in
/// every call of a socket would cost more than queuing a message.
#[expect(unsafe_code, reason = "no safe crate offers these two calls")]
fn watch() {
    #[cfg(windows)]
    windows::stay_loaded();
    // SAFETY: both functions exist as long as the program. `in_child` touches only an atomic, as is
    // required in a child of a process with threads. `at_exit` does not unwind.
    unsafe {
        #[cfg(unix)]
        libc::pthread_atfork(None, None, Some(in_child));
        libc::atexit(at_exit);
    }
}

#[cfg(unix)]
extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The process ends by `exit` or by a return from `main`.
extern "C" fn at_exit() {
    #[cfg(windows)]
    if windows::is_too_late() {
        return;
    }
    close_all();
}

/// Closes every open connection of this process in order, async or blocking, including dropped
/// ones, and waits for them to end, for at most the longest
/// [`Options::close_linger`](crate::Options::close_linger) among them. Connections that are still
/// open then are reset.
///
/// A return from `main` and [`std::process::exit`] do this by themselves. Call it before an end
/// that runs no exit handlers: `_exit`, a signal that the process sends itself, on Windows also
/// [`std::process::exit`], and any end of a program that has these sockets in a DLL. Connections of
/// sockets with [`EndpointOptions::close_at_exit`](crate::EndpointOptions::close_at_exit) off are
/// left alone.
pub fn close_all() {
    let Some(in_use) = in_use() else { return };
    let sockets: Vec<_> = in_use.iter().filter_map(Weak::upgrade).collect();
    drop(in_use);
    let open = sockets.into_iter().filter(|shared| shared.has_open_connections());
    let left = Arc::new((Mutex::new(0_usize), Condvar::new()));
    let mut longest = Duration::ZERO;
    for shared in open {
        longest = longest.max(shared.linger());
        let begun = Counted::new(&left);
        // The driver may have ended already, or be waiting for this thread.
        let _ = shared.spawn_close_thread(begun);
    }
    let (count, none_left) = &*left;
    let count = count.lock().unwrap_or_else(PoisonError::into_inner);
    // Each thread limits its own time. This limit is for a stuck one.
    let _ = none_left.wait_timeout_while(count, longest + SLACK, |count| *count > 0);
}

/// Counts a thread until it is dropped.
pub(crate) struct Counted(Arc<(Mutex<usize>, Condvar)>);

impl Counted {
    fn new(left: &Arc<(Mutex<usize>, Condvar)>) -> Self {
        *left.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self(Arc::clone(left))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.1.notify_all();
    }
}

/// Number of sockets of this process that are not closed yet.
static OPEN: AtomicU32 = AtomicU32::new(0);

/// Counts a socket until it is closed. The owner must drop this after the socket.
#[derive(Debug)]
pub(crate) struct Open(());

impl Open {
    pub(crate) fn new() -> Self {
        OPEN.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How often a bind checks whether a socket is still closing, and the time between two checks. The
/// thread that closes one may have to wait for a processor.
const LOOKS: usize = 200;
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Makes the sockets of this process that are no longer used, but whose drivers have not ended yet,
/// give way to a new one on the same UDP port. Returns whether there are any. Waits for those that
/// are closing at this moment.
#[expect(clippy::disallowed_methods, reason = "a bind waits, and no machine")]
pub(crate) fn release_port(udp_port: u16) -> bool {
    let others = release_unused_sockets(udp_port);
    let looks = (0..LOOKS).take_while(|_| is_one_being_closed());
    looks.for_each(|_| std::thread::sleep(LOOK_AGAIN));
    others
}

/// Whether a socket without an owner is still open.
fn is_one_being_closed() -> bool {
    // In this order, so that a socket that closes in between counts as closing.
    let open = OPEN.load(Ordering::SeqCst) as usize;
    let Some(in_use) = in_use() else { return false };
    open > in_use.iter().filter(|socket| socket.strong_count() > 0).count()
}

fn release_unused_sockets(udp_port: u16) -> bool {
    let Some(in_use) = in_use() else { return false };
    let sockets: Vec<_> = in_use.iter().filter_map(Weak::upgrade).collect();
    drop(in_use);
    let at_port = sockets.iter().filter(|shared| shared.is_over_at(udp_port));
    at_port.map(|shared| shared.io.release_port()).filter(|&gives| gives).count() > 0
}

/// Registers a socket, so that the end of the process closes it.
pub(crate) fn remember(shared: &Arc<Shared>) {
    let Some(mut in_use) = in_use() else { return };
    if in_use.len() == in_use.capacity() {
        in_use.retain(|weak| weak.strong_count() > 0);
    }
    in_use.push(Arc::downgrade(shared));
}

/// The list; `None` if a fork copied it while another thread held the lock, so that it stays
/// locked.
fn in_use() -> Option<MutexGuard<'static, Vec<Weak<Shared>>>> {
    for _ in 0..1000 {
        match IN_USE.try_lock() {
            Ok(list) => return Some(list),
            Err(TryLockError::Poisoned(e)) => return Some(e.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EndpointOptions;

    /// A weak reference keeps the memory of its socket.
    #[test]
    fn sockets_that_are_closed_are_forgotten() {
        let at = "127.0.0.1:0".parse().unwrap();
        for _ in 0..2000 {
            drop(Shared::bind(at, &EndpointOptions::default()).unwrap());
        }
        let known = in_use().unwrap().len();
        assert!(known < 1000, "{known}, those of other tests among them");
    }
}
