//! The broker's life: what it holds, and when it ends.

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

use crate::gates::{self, Gates};
use crate::ports::Ports;
use crate::region::{Claim, Region};
use crate::slabs::Slabs;
use crate::socket::Socket;
use crate::{place, requests};

/// Time without any socket after which a broker ends.
const IDLE: Duration = Duration::from_secs(5);
/// Time between two looks at what has ended.
const SWEEP: Duration = Duration::from_millis(500);

/// Why a broker does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something that it needs was refused.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

fn io_error(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { what, source }
}

/// What all requests and sockets share.
#[derive(Debug)]
pub(crate) struct Broker {
    pub(crate) region: Region,
    pub(crate) ports: Mutex<Ports>,
    sockets: Mutex<HashMap<u64, Arc<Socket>>>,
    pub(crate) gates: Mutex<Gates>,
    closing: AtomicUsize,
    /// Where messages of programs are copied to.
    pub(crate) slabs: Slabs,
}

/// Serves the programs of this user and network namespace until none needs it any more. Returns at
/// once where another broker does so already.
///
/// # Errors
/// The folder, the lock or the socket cannot be had.
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

/// The first program has started this broker, which serves others as well: its limits are lifted as
/// far as the system lets us, and its folder can be unmounted.
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
    // Memory that is shared is a file for the system. One that is too large is then an error, and
    // not the end.
    let too_large = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    let _ = signal(too_large).map_err(io_error("cannot start"))?;
    // What a broker left that was killed.
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path).map_err(io_error("cannot listen for programs"))?;
    let region = Region::new().map_err(io_error("cannot make shared memory"))?;
    let broker = Arc::new(Broker {
        region,
        ports: Mutex::default(),
        sockets: Mutex::default(),
        gates: Mutex::default(),
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
    // Whoever connected meanwhile sees the connection end, and starts another broker.
    Ok(())
}

impl Broker {
    /// Frees what ended; ends itself when nobody has needed the broker for some time.
    async fn watch(&self) {
        let mut busy = Instant::now();
        loop {
            sleep(SWEEP).await;
            self.sweep();
            let is_used = |at| self.find_map(|s| s.listens_at(at).then_some(())).is_some();
            gates::shut_idle(&self.gates, is_used).await;
            let is_idle = self.sockets.lock().expect("never poisoned").is_empty();
            if !is_idle || self.closing.load(Ordering::Relaxed) > 0 {
                busy = Instant::now();
            }
            if busy.elapsed() >= IDLE {
                return;
            }
        }
    }

    /// Frees the slots of ended sockets that no program has open any more.
    pub(crate) fn sweep(&self) {
        let mut sockets = self.sockets.lock().expect("never poisoned");
        if !sockets.values().any(|s| s.has_ended()) {
            return;
        }
        let Ok(table) = std::fs::read_to_string("/proc/net/unix") else { return };
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
    }

    /// The socket of a program's end.
    pub(crate) fn find(&self, cookie: u64) -> Option<Arc<Socket>> {
        self.sockets.lock().expect("never poisoned").get(&cookie).map(Arc::clone)
    }

    /// What the first socket gives for which `f` gives something.
    pub(crate) fn find_map<T>(&self, f: impl FnMut(&Arc<Socket>) -> Option<T>) -> Option<T> {
        self.sockets.lock().expect("never poisoned").values().find_map(f)
    }

    /// What sockets give for which `f` gives something.
    pub(crate) fn filter_map<T>(&self, f: impl FnMut(&Arc<Socket>) -> Option<T>) -> Vec<T> {
        self.sockets.lock().expect("never poisoned").values().filter_map(f).collect()
    }

    /// Keeps a new socket.
    pub(crate) fn add(&self, socket: &Arc<Socket>) {
        let mut sockets = self.sockets.lock().expect("never poisoned");
        sockets.insert(socket.cookie(), Arc::clone(socket));
    }

    /// Counts a connection that closes after its program, so that the broker waits for it.
    pub(crate) fn count_closing(&self, begins: bool) {
        if begins {
            self.closing.fetch_add(1, Ordering::Relaxed);
        } else {
            self.closing.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
