//! Anonymous network namespaces: each is a thread that entered it.

use std::fs;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use nix::sched::{CloneFlags, unshare};
use rustix::thread::{Pid, gettid};

/// A network namespace without a name, empty at first. It lives as long as a thread, process, or
/// device of it is open to anybody: nothing of it can outlive this program.
#[derive(Debug)]
pub(crate) struct Namespace {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    id: Pid,
}

type Job = Box<dyn FnOnce() + Send>;

impl Namespace {
    /// A new namespace, in the user namespace of the caller.
    pub(crate) fn new() -> io::Result<Self> {
        let (jobs, todo) = channel::<Job>();
        let (entered, answer) = channel();
        let thread = thread::Builder::new().name("namespace".to_owned()).spawn(move || {
            let is_in = unshare(CloneFlags::CLONE_NEWNET);
            let go_on = is_in.is_ok();
            if entered.send(is_in.map(|()| gettid())).is_ok() && go_on {
                todo.into_iter().for_each(|job| job());
            }
        })?;
        let id = answer.recv().map_err(io::Error::other)??;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), id })
    }

    /// Reads a file of `/proc/net` as it is inside, even while a job there takes its time.
    pub(crate) fn read_net(&self, file: &str) -> io::Result<String> {
        fs::read_to_string(format!("/proc/self/task/{}/net/{file}", self.id.as_raw_nonzero()))
    }

    /// Does a job inside. Sockets, devices and processes that it makes are of this namespace, and
    /// a process stays bound to the thread that made it: it is told when the namespace ends.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (done, answer) = channel();
        let job: Job = Box::new(move || {
            // Nobody listens any more only where the caller is gone.
            let _ = done.send(job());
        });
        let jobs = self.jobs.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        jobs.send(job).map_err(|_| io::Error::from(io::ErrorKind::NotConnected))?;
        answer.recv().map_err(|_| io::Error::other("a job in a namespace came to no end"))?
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}
