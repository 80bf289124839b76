//! Creates, opens and enters network namespaces.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::thread::JoinHandle;

use nix::sched::{CloneFlags, setns, unshare};

/// A network namespace, kept by an open file.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// The namespace of this thread.
    ///
    /// # Errors
    /// The kernel has no network namespaces.
    pub fn current() -> io::Result<Self> {
        File::open("/proc/thread-self/ns/net").map(Self)
    }

    /// Creates an empty namespace and moves this thread into it.
    ///
    /// # Errors
    /// No permission, or the kernel's limit is reached.
    pub fn unshare() -> io::Result<Self> {
        unshare(CloneFlags::CLONE_NEWNET)?;
        Self::current()
    }

    /// Creates a namespace and runs `job` in it. This thread stays in its namespace.
    ///
    /// # Errors
    /// As [`Self::unshare`], and errors of `job`.
    pub fn with(job: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<Self> {
        let made = thread(|| {
            let namespace = Self::unshare()?;
            job().map(|()| namespace)
        });
        made.join().map_err(|_| io::Error::other("a thread in a namespace panicked"))?
    }

    /// Moves this thread, and programs that it starts, to the namespace.
    ///
    /// # Errors
    /// No permission: root of a user namespace cannot return to the machine's namespace.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(self.0.as_fd(), CloneFlags::CLONE_NEWNET)?)
    }

    /// Starts a job in the namespace, on a new thread.
    ///
    /// # Errors
    /// Too many open files.
    pub fn spawn<R: Send + 'static>(
        &self,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> io::Result<JoinHandle<R>> {
        let space = self.0.try_clone()?;
        Ok(thread(move || {
            // This cannot fail for a namespace that we created.
            let _ = setns(space.as_fd(), CloneFlags::CLONE_NEWNET);
            job()
        }))
    }

    /// Runs a job in the namespace and waits for it.
    ///
    /// # Errors
    /// The job's error, or that it panicked.
    pub fn run<R: Send + 'static>(
        &self,
        job: impl FnOnce() -> io::Result<R> + Send + 'static,
    ) -> io::Result<R> {
        let done = self.spawn(job)?.join();
        done.map_err(|_| io::Error::other("a thread in a namespace panicked"))?
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Namespace {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[expect(clippy::disallowed_methods, reason = "a thread is in one namespace")]
fn thread<R: Send + 'static>(job: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    std::thread::spawn(job)
}
