//! Runs jobs in a namespace, on a thread that belongs to it.

use std::fs;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use rustix::thread::{Pid, gettid};

use crate::namespace::Namespace;

/// A host: an unnamed network namespace, empty at first, with a thread that runs its jobs. It lives
/// as long as a thread, process or open file refers to it, so nothing of it outlives this program.
/// outlive this program.
#[derive(Debug)]
pub struct Host {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    id: Pid,
}

type Job = Box<dyn FnOnce() + Send>;

impl Host {
    /// A new host, in the user namespace of the caller.
    ///
    /// # Errors
    /// As [`Namespace::unshare`].
    pub fn new() -> io::Result<Self> {
        let (jobs, todo) = channel::<Job>();
        let (entered, answer) = channel();
        let thread = thread::Builder::new().name("namespace".to_owned()).spawn(move || {
            let namespace = Namespace::unshare();
            let go_on = namespace.is_ok();
            if entered.send(namespace.map(|_| gettid())).is_ok() && go_on {
                todo.into_iter().for_each(|job| job());
            }
        })?;
        let id = answer.recv().map_err(io::Error::other)??;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), id })
    }

    /// Reads a file of the namespace's `/proc/net`, even while a job is running.
    ///
    /// # Errors
    /// The file does not exist.
    pub fn read_net(&self, file: &str) -> io::Result<String> {
        fs::read_to_string(format!("/proc/self/task/{}/net/{file}", self.id.as_raw_nonzero()))
    }

    /// Runs a job in the namespace, to which its sockets, devices and processes belong. A process
    /// stays tied to the thread that started it: the kernel signals it when the host ends.
    ///
    /// # Errors
    /// The job's error, or that it panicked.
    pub fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (done, answer) = channel();
        let job: Job = Box::new(move || {
            // Sending fails only if the caller is gone.
            let _ = done.send(job());
        });
        let jobs = self.jobs.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        jobs.send(job).map_err(|_| io::Error::from(io::ErrorKind::NotConnected))?;
        answer.recv().map_err(|_| io::Error::other("a job in a namespace panicked"))?
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been printed already.
            let _ = thread.join();
        }
    }
}
