//! The task that drives an endpoint on tokio: waits for the socket, the clock or a call.

use std::io;
use std::sync::Arc;
use std::task::{Wake, Waker};

use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::Notify;

use crate::Error;
use crate::io::{Io, Receiver};
use crate::process::Process;
use crate::shared::{Running, Shared, Turn};

/// Prepares the driver on the current runtime.
pub(crate) fn prepare(shared: &Shared) -> Result<(), Error> {
    let io_error = |source| Error::Io { what: "cannot drive the socket", source };
    let runtime = tokio::runtime::Handle::try_current()
        .map_err(|e| io_error(io::Error::other(e.to_string())))?;
    // The runtime waits on a second handle of the same socket; all reading and writing happens on
    // the first, so that any thread may write.
    let socket = shared.io.socket().try_clone().map_err(io_error)?;
    // To wait on, a raw socket is as good as one of UDP.
    let socket = UdpSocket::from_std(socket.into()).map_err(io_error)?;
    let socket = Watched { socket: Some(socket), process: Process::this() };
    let bell = Arc::new(Bell::default());
    shared.set_driver(Waker::from(Arc::clone(&bell)));
    shared.set_starter(move |shared| {
        runtime.spawn(drive(Arc::clone(shared), socket, bell));
        Ok(())
    });
    Ok(())
}

/// The runtime's handle of the socket. Where a forked child lets go of its copy of the runtime, the
/// handle must not take the socket out of the poller, which is the parent's as well.
struct Watched {
    socket: Option<UdpSocket>,
    process: Process,
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.process.is_this() {
            std::mem::forget(self.socket.take());
        }
    }
}

/// Rung by calls that leave work to the driver.
#[derive(Debug, Default)]
struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_one();
    }
}

async fn drive(shared: Arc<Shared>, watched: Watched, bell: Arc<Bell>) {
    let running = Running(shared);
    let shared = &running.0;
    let Some(socket) = &watched.socket else { return };
    let mut rx = Receiver::new(&shared.io);
    let sleep = tokio::time::sleep(std::time::Duration::ZERO);
    tokio::pin!(sleep);
    let mut errors = false;
    loop {
        let turn = shared.turn(&mut rx, |rx, io| read(socket, rx, io), errors);
        if turn.finished {
            return;
        }
        if turn.more {
            // The tasks that were woken run first: they make room for what comes next.
            tokio::task::yield_now().await;
            errors = false;
            continue;
        }
        if turn.holds_acks {
            // An answer of theirs can carry an acknowledgement.
            tokio::task::yield_now().await;
            errors = false;
            continue;
        }
        if let Some(at) = turn.deadline {
            sleep.as_mut().reset(shared.clock.to_std(at).into());
        }
        errors = wait(socket, &bell, sleep.as_mut(), &turn).await;
    }
}

/// Reads once. A read that leaves buffers unused has emptied the socket, so tokio need not be told
/// by another read that finds nothing; what arrives from here on is an event of its own.
fn read(socket: &UdpSocket, rx: &mut Receiver, io: &Io) -> io::Result<usize> {
    let mut last = 0;
    let result = socket.try_io(Interest::READABLE, || {
        let count = rx.read(io)?;
        if count < rx.capacity() {
            last = count;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(count)
    });
    if last > 0 { Ok(last) } else { result }
}

/// Waits for a reason to take a turn; whether the socket reports errors.
async fn wait(
    socket: &UdpSocket,
    bell: &Bell,
    sleep: std::pin::Pin<&mut tokio::time::Sleep>,
    turn: &Turn,
) -> bool {
    let interest = if turn.blocked {
        Interest::READABLE | Interest::ERROR | Interest::WRITABLE
    } else {
        Interest::READABLE | Interest::ERROR
    };
    tokio::select! {
        biased;
        () = bell.0.notified() => false,
        ready = socket.ready(interest) => match ready {
            Ok(ready) => {
                if ready.is_error() {
                    clear(socket, Interest::ERROR);
                }
                if turn.blocked && ready.is_writable() {
                    // A reported error leaves tokio believing that the socket is writable for
                    // ever; then only time can tell.
                    clear(socket, Interest::WRITABLE);
                    if ready.is_write_closed() {
                        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                    }
                }
                ready.is_error()
            }
            Err(_) => true,
        },
        () = sleep, if turn.deadline.is_some() => false,
    }
}

/// Forgets a readiness, so that the next event is waited for.
fn clear(socket: &UdpSocket, interest: Interest) {
    let _ = socket.try_io(interest, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
}
