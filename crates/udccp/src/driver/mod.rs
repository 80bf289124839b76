//! The task that drives an endpoint on tokio: waits for the socket, the clock or a call.

mod watched;

use std::io;
use std::sync::Arc;
use std::task::{Wake, Waker};

use socket2::Socket;
use tokio::io::Interest;
use tokio::sync::Notify;

use crate::Error;
use crate::io::{Io, Receiver};
use crate::shared::{Running, Shared, Turn};
use watched::Watched;

/// Prepares the driver on the current runtime.
pub(crate) fn prepare(shared: &Shared) -> Result<(), Error> {
    let io_error = |source| Error::Io { what: "cannot drive the socket", source };
    let runtime = tokio::runtime::Handle::try_current()
        .map_err(|e| io_error(io::Error::other(e.to_string())))?;
    // The runtime waits on a second handle of the same socket. All reading and writing uses the
    // first one, so that any thread may write.
    let arrivals = watch_arrivals(shared.io.socket()).map_err(io_error)?;
    let bell = Arc::new(Bell::default());
    shared.set_driver(Waker::from(Arc::clone(&bell)));
    shared.set_starter(move |shared| {
        // Created here, because a runtime that shuts down drops tasks that never ran.
        let running = Running(Arc::clone(shared));
        runtime.spawn(drive(running, arrivals, bell));
        Ok(())
    });
    Ok(())
}

/// Notified by calls that leave work to the driver.
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

async fn drive(running: Running, arrivals: Watched, bell: Arc<Bell>) {
    let shared = &running.0;
    // Watched only while a write is blocked. Otherwise each packet sent would wake the runtime.
    let mut room = None;
    let mut rx = Receiver::new(&shared.io);
    let sleep = tokio::time::sleep(std::time::Duration::ZERO);
    tokio::pin!(sleep);
    let mut errors = false;
    loop {
        let turn = shared.turn(&mut rx, |rx, io| read(&arrivals, rx, io), errors);
        if turn.finished {
            return;
        }
        if turn.more {
            // Woken tasks run first: they make room for the next packets.
            tokio::task::yield_now().await;
            errors = false;
            continue;
        }
        if turn.holds_acks {
            // Their answers can carry acknowledgements. Usually they have, and nothing is left.
            tokio::task::yield_now().await;
            if shared.still_holds_acks() {
                errors = false;
                continue;
            }
        }
        if let Some(at) = turn.deadline {
            sleep.as_mut().reset(shared.clock.to_std(at).into());
        }
        room = if turn.blocked { room.or_else(|| watch_room(shared.io.socket())) } else { None };
        errors = wait(&arrivals, room.as_ref(), &bell, sleep.as_mut(), &turn).await;
    }
}

/// Reads once. A read that leaves buffers unused has emptied the socket, so tokio does not need
/// another read that finds nothing. Packets that arrive later cause a new event.
fn read(socket: &Watched, rx: &mut Receiver, io: &Io) -> io::Result<usize> {
    let mut last = 0;
    let result = socket.try_read(|| {
        let count = rx.read(io)?;
        if !rx.was_full(count) {
            last = count;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(count)
    });
    if last > 0 { Ok(last) } else { result }
}

/// Watches for arriving packets and for errors.
fn watch_arrivals(socket: &Socket) -> io::Result<Watched> {
    Watched::new(socket, Interest::READABLE)
}

/// Watches for room to write. If there is no descriptor left for it, the driver retries by timer.
fn watch_room(socket: &Socket) -> Option<Watched> {
    Watched::new(socket, Interest::WRITABLE).ok()
}

/// Waits for a reason to take a turn. Returns whether the socket reports errors.
async fn wait(
    arrivals: &Watched,
    room: Option<&Watched>,
    bell: &Bell,
    sleep: std::pin::Pin<&mut tokio::time::Sleep>,
    turn: &Turn,
) -> bool {
    tokio::select! {
        biased;
        () = bell.0.notified() => false,
        has_error = arrivals.readable() => has_error,
        () = has_room(room), if turn.blocked => false,
        () = sleep, if turn.deadline.is_some() => false,
    }
}

/// Waits until the socket can be written to.
async fn has_room(room: Option<&Watched>) {
    if let Some(room) = room
        && room.writable().await
    {
        return;
    }
    // Nothing reports room, or a reported error makes tokio believe that the socket is always
    // writable. Then only a timer helps.
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Duration;

    use socket2::{Domain, Type};

    use super::*;

    fn fill(socket: &Socket) -> usize {
        std::iter::from_fn(|| socket.send(&[0; 1000]).ok()).count()
    }

    #[tokio::test]
    async fn room_to_write_is_told_when_it_comes_and_watched_only_on_demand() {
        let (from, to) = Socket::pair(Domain::UNIX, Type::DGRAM, None).unwrap();
        from.set_nonblocking(true).unwrap();
        let arrivals = watch_arrivals(&from).unwrap();
        let sent = fill(&from);
        let room = watch_room(&from).unwrap();
        let soon = Duration::from_millis(50);
        assert!(tokio::time::timeout(soon, has_room(Some(&room))).await.is_err(), "{sent} wait");
        for _ in 0..sent {
            to.recv(&mut [std::mem::MaybeUninit::uninit(); 1000]).unwrap();
        }
        // So long that only an endless wait exceeds it.
        tokio::time::timeout(soon * 600, has_room(Some(&room))).await.expect("there is room");
        assert!(fill(&from) > 0);
        let unasked = arrivals.writable();
        assert!(tokio::time::timeout(soon, unasked).await.is_err(), "of no interest");
    }
}
