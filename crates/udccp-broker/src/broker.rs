//! The broker's state, its start and its end.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

use crate::endpoints::{self, Endpoints};
use crate::ports::Ports;
use crate::region::{Claim, Region};
use crate::slabs::Slabs;
use crate::socket::Socket;
use crate::{place, requests};

/// A broker exits after this time without sockets.
const IDLE: Duration = Duration::from_secs(5);
/// Interval between sweeps for ended sockets.
const SWEEP: Duration = Duration::from_millis(500);

/// Why a broker cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

fn io_error(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { what, source }
}

/// The state that all requests and sockets share.
#[derive(Debug)]
pub(crate) struct Broker {
    pub(crate) region: Region,
    pub(crate) ports: Mutex<Ports>,
    sockets: Mutex<HashMap<u64, Arc<Socket>>>,
    pub(crate) endpoints: Mutex<Endpoints>,
    closing: AtomicUsize,
    /// Memory to which programs' messages are copied.
    pub(crate) slabs: Slabs,
}

/// Serves the programs of this user and network namespace until none needs a broker. Returns at
/// once if another broker is already running.
///
/// # Errors
/// The folder, the lock or the socket is not available.
pub fn serve(folder: &Path) -> Result<(), Error> {
    let folder = &std::path::absolute(folder).map_err(io_error("cannot use the folder"))?;
    place::check(folder).map_err(io_error("cannot use the folder"))?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let Some(lock) = place::claim(folder).map_err(io_error("cannot lock"))? else { return Ok(()) };
    let _claim = Claim(lock);
    leave_program();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(io_error("cannot start"))?;
    runtime.block_on(run(&place::socket(folder)))
}

/// The program that started this broker set its limits and working directory, but the broker serves
/// other programs too. Raises the limits as far as the system allows, and leaves the directory so
/// that it can be unmounted.
fn leave_program() {
    let limits = [Resource::Nofile, Resource::Fsize, Resource::Cpu, Resource::As, Resource::Data];
    for resource in limits {
        let mut limit = getrlimit(resource);
        limit.current = limit.maximum;
        let _ = setrlimit(resource, limit);
    }
    let _ = std::env::set_current_dir("/");
}

async fn run(path: &Path) -> Result<(), Error> {
    // Shared memory counts as a file. Exceeding its size limit then returns an error instead of
    // killing the broker.
    let too_large = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    let _ = signal(too_large).map_err(io_error("cannot start"))?;
    // A broker that was killed may have left its socket behind.
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path).map_err(io_error("cannot listen for programs"))?;
    let region = Region::new().map_err(io_error("cannot make shared memory"))?;
    let broker = Arc::new(Broker {
        region,
        ports: Mutex::default(),
        sockets: Mutex::default(),
        endpoints: Mutex::default(),
        closing: AtomicUsize::new(0),
        slabs: Slabs::default(),
    });
    let mut ask_to_end = signal(SignalKind::terminate()).map_err(io_error("cannot start"))?;
    tokio::select! {
        () = requests::serve(&broker, &listener) => {}
        () = broker.watch() => {}
        _ = ask_to_end.recv() => {}
    }
    let _ = std::fs::remove_file(path);
    // Programs that connected meanwhile see the connection end, and start another broker.
    Ok(())
}

impl Broker {
    /// Frees ended sockets, and ends the broker after some time without use.
    async fn watch(&self) {
        let mut busy = Instant::now();
        loop {
            sleep(SWEEP).await;
            let is_known = self.sweep();
            let is_used = |at| self.find_map(|s| s.listens_at(at).then_some(())).is_some();
            endpoints::close_idle(&self.endpoints, is_used).await;
            let is_over = |socket: &Arc<Socket>| !is_known && socket.has_ended();
            let is_idle = self.sockets.lock().expect("never poisoned").values().all(is_over);
            if !is_idle || self.closing.load(Ordering::Relaxed) > 0 {
                busy = Instant::now();
            }
            if busy.elapsed() >= IDLE {
                return;
            }
        }
    }

    /// Frees the slots of ended sockets that no program has open. Returns false if the system does
    /// not tell which those are.
    fn sweep(&self) -> bool {
        let mut sockets = self.sockets.lock().expect("never poisoned");
        if !sockets.values().any(|s| s.has_ended()) {
            return true;
        }
        let Ok(table) = std::fs::read_to_string("/proc/net/unix") else { return false };
        let open: std::collections::HashSet<u64> = table
            .lines()
            .skip(1)
            .filter_map(|line| line.split_ascii_whitespace().nth(6)?.parse().ok())
            .collect();
        sockets.retain(|_, socket| {
            let is_gone = socket.has_ended() && !open.contains(&socket.inode());
            if is_gone {
                self.region.free(socket.slot());
            }
            !is_gone
        });
        true
    }

    /// Frees slots for a new socket. If the system does not tell which are unused, this frees one
    /// of those that ended, the oldest.
    pub(crate) fn make_room(&self) {
        if self.sweep() {
            return;
        }
        let mut sockets = self.sockets.lock().expect("never poisoned");
        let ended = sockets.iter().filter(|(_, socket)| socket.has_ended());
        let oldest = ended.map(|(cookie, _)| *cookie).min();
        if let Some(socket) = oldest.and_then(|cookie| sockets.remove(&cookie)) {
            self.region.free(socket.slot());
        }
    }

    /// Finds a socket by the cookie of the program's end.
    pub(crate) fn find(&self, cookie: u64) -> Option<Arc<Socket>> {
        self.sockets.lock().expect("never poisoned").get(&cookie).map(Arc::clone)
    }

    /// Returns the first result of `f` that is not `None`.
    pub(crate) fn find_map<T>(&self, f: impl FnMut(&Arc<Socket>) -> Option<T>) -> Option<T> {
        self.sockets.lock().expect("never poisoned").values().find_map(f)
    }

    /// Returns all results of `f` that are not `None`.
    pub(crate) fn filter_map<T>(&self, f: impl FnMut(&Arc<Socket>) -> Option<T>) -> Vec<T> {
        self.sockets.lock().expect("never poisoned").values().filter_map(f).collect()
    }

    /// Adds a new socket.
    pub(crate) fn add(&self, socket: &Arc<Socket>) {
        let mut sockets = self.sockets.lock().expect("never poisoned");
        sockets.insert(socket.cookie(), Arc::clone(socket));
    }

    /// Counts connections that are still closing after their program ended: the broker waits for
    /// them.
    pub(crate) fn count_closing(&self, begins: bool) {
        if begins {
            self.closing.fetch_add(1, Ordering::Relaxed);
        } else {
            self.closing.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
