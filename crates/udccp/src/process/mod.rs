//! Handles fork and the end of the process.
//!
//! A kernel's sockets outlive their process: what `send` accepted still leaves, and the peer hears
//! of the end. These sockets live in the process, so its end waits for them, within bounds.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError, TryLockError, Weak};
use std::time::Duration;

use crate::shared::Shared;

#[cfg(windows)]
mod windows;

/// Forks between the process that opened the first socket and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The sockets of this process, those of its ancestors and closed ones among them.
static IN_USE: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Beyond the time that connections may linger: a thread has to start, and to be told the time.
const SLACK: Duration = Duration::from_millis(500);

/// A process, to tell it from those that it forks: what was opened before a fork belongs to the
/// parent, and calls of it fail with [`Error::Forked`](crate::Error::Forked) in the child. Bindings
/// ask it before they touch a lock, which a fork may have copied while another thread held it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// This one.
    #[must_use]
    pub fn this() -> Self {
        static WATCH: Once = Once::new();
        WATCH.call_once(watch);
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether it is this one, and not an ancestor that forked.
    #[inline]
    #[must_use]
    pub fn is_this(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }
}

/// Has the C library tell of forks and of the end. A system call for each call of a socket, which
/// would tell as well, costs more than queuing a message does.
#[expect(unsafe_code, reason = "no safe crate offers these two calls")]
fn watch() {
    #[cfg(windows)]
    windows::stay_loaded();
    // SAFETY: both functions live as long as the program. `in_child` touches an atomic and nothing
    // else, as a child of many threads must; `at_exit` does not unwind.
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

/// The process ends by `exit` or by the return of `main`.
extern "C" fn at_exit() {
    #[cfg(windows)]
    if windows::is_too_late() {
        return;
    }
    close_all();
}

/// Closes every open connection of this process in order, dropped or not, async or blocking, and
/// waits for that: for the longest [`Options::close_linger`](crate::Options::close_linger) of them
/// at most. What is open then is reset.
///
/// The end of a process does this by itself where it is the return of `main` or
/// [`std::process::exit`]. Call it before an end that runs no exit handlers: `_exit`, a signal that
/// the process sends itself, or, on Windows, [`std::process::exit`], and every end of a program
/// that has these sockets in a DLL. Connections of sockets with
/// [`EndpointOptions::close_at_exit`](crate::EndpointOptions::close_at_exit) off stay as they are.
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
        // The driver may be gone already, or wait for this very thread.
        let _ = shared.see_off_on_a_thread(begun);
    }
    let (count, none_left) = &*left;
    let count = count.lock().unwrap_or_else(PoisonError::into_inner);
    // Each thread keeps its own time; this is for one that cannot.
    let _ = none_left.wait_timeout_while(count, longest + SLACK, |count| *count > 0);
}

/// Counts a thread for as long as it is kept.
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

/// Sockets of this process that are not closed yet.
static OPEN: AtomicU32 = AtomicU32::new(0);

/// Counts a socket until it is closed. Its owner drops it after the socket.
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

/// How often a bind looks whether a socket is still being closed, and the time between two looks: a
/// thread that closes one may have to wait for a processor.
const LOOKS: usize = 200;
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Has the sockets of this process that nobody uses any more, but whose drivers have not ended yet,
/// give way to one that is to have the same UDP port; whether there are any. Waits for those that
/// close just now.
#[expect(clippy::disallowed_methods, reason = "a bind waits, and no machine")]
pub(crate) fn give_way(udp_port: u16) -> bool {
    let others = others_give_way(udp_port);
    let looks = (0..LOOKS).take_while(|_| is_one_being_closed());
    looks.for_each(|_| std::thread::sleep(LOOK_AGAIN));
    others
}

/// Whether a socket that nobody has any more is still open.
fn is_one_being_closed() -> bool {
    // In this order: one that is closed in between counts as being closed.
    let open = OPEN.load(Ordering::SeqCst) as usize;
    let Some(in_use) = in_use() else { return false };
    open > in_use.iter().filter(|socket| socket.strong_count() > 0).count()
}

fn others_give_way(udp_port: u16) -> bool {
    let Some(in_use) = in_use() else { return false };
    let sockets: Vec<_> = in_use.iter().filter_map(Weak::upgrade).collect();
    drop(in_use);
    let at_port = sockets.iter().filter(|shared| shared.is_over_at(udp_port));
    at_port.map(|shared| shared.io.give_way()).filter(|&gives| gives).count() > 0
}

/// Has the end of the process see to this socket.
pub(crate) fn remember(shared: &Arc<Shared>) {
    let Some(mut in_use) = in_use() else { return };
    if in_use.len() == in_use.capacity() {
        in_use.retain(|weak| weak.strong_count() > 0);
    }
    in_use.push(Arc::downgrade(shared));
}

/// The list, unless a fork copied it while another thread held the lock, which here stays locked.
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

    /// What is known of one keeps its memory.
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
