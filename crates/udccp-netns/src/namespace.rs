//! Makes, opens and enters network namespaces.

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
    /// A kernel without network namespaces.
    pub fn current() -> io::Result<Self> {
        File::open("/proc/thread-self/ns/net").map(Self)
    }

    /// A new, empty one; this thread is in it from now on.
    ///
    /// # Errors
    /// No right to make one, or as many as the kernel allows.
    pub fn unshare() -> io::Result<Self> {
        unshare(CloneFlags::CLONE_NEWNET)?;
        Self::current()
    }

    /// A new, empty one. This thread stays where it is; `job` runs in the namespace first.
    ///
    /// # Errors
    /// As [`Self::unshare`], and as `job`.
    pub fn with(job: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<Self> {
        let made = thread(|| {
            let namespace = Self::unshare()?;
            job().map(|()| namespace)
        });
        made.join().map_err(|_| io::Error::other("a thread in a namespace panicked"))?
    }

    /// Moves this thread to it, with the programs that it starts.
    ///
    /// # Errors
    /// No right to: root of a user namespace may not go back to the namespace of the machine.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(self.0.as_fd(), CloneFlags::CLONE_NEWNET)?)
    }

    /// Starts a job in the namespace, in a thread of its own.
    ///
    /// # Errors
    /// No more open files.
    pub fn spawn<R: Send + 'static>(
        &self,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> io::Result<JoinHandle<R>> {
        let space = self.0.try_clone()?;
        Ok(thread(move || {
            // Cannot fail for a namespace that we made; the job would fail on the wrong host.
            let _ = setns(space.as_fd(), CloneFlags::CLONE_NEWNET);
            job()
        }))
    }

    /// Does a job in the namespace, and waits for it.
    ///
    /// # Errors
    /// Those of the job, and a job that panicked.
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
