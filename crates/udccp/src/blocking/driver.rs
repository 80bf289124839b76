//! The thread that drives an endpoint: waits for the socket, the clock or a call.

use std::sync::Arc;
use std::task::Waker;

use udccp_base::{Duration, Instant};

use super::alarm::LazyAlarm;
use super::bell::{Bell, BellReceiver};
use super::shared_driver::SharedDriver;
use crate::Error;
use crate::io::wait;
use crate::shared::{Running, Shared, Turn};

/// Prepares the driver.
pub(super) fn prepare(shared: &Shared) -> Result<(), Error> {
    let io_error = |source| Error::Io { what: "cannot start the socket's thread", source };
    let (bell, rings) = Bell::new().map_err(io_error)?;
    let bell = Arc::new(bell);
    shared.set_driver(Waker::from(Arc::clone(&bell)));
    let alarm = Arc::new(LazyAlarm::default());
    shared.set_alarm(Arc::<LazyAlarm>::clone(&alarm));
    let shared_driver = Arc::new(SharedDriver::new(shared, alarm, bell, rings));
    shared.set_shared_driver(Arc::clone(&shared_driver));
    shared.set_starter(move |shared| {
        let theirs = Arc::clone(shared);
        let thread = std::thread::Builder::new().name("udccp".into());
        let drive = move || {
            let running = Running(theirs);
            shared_driver.drive(&running.0);
        };
        thread.spawn(drive).map_err(io_error)?;
        Ok(())
    });
    Ok(())
}

/// How long an acknowledgement is delayed so that a woken thread can answer or read on.
const HELD_FOR: Duration = Duration::from_millis(1);

/// Sleeps from `now` until there is a reason for a turn, or until `until`. Returns whether the
/// socket reports errors.
pub(super) fn wait_for_socket(
    shared: &Shared,
    rings: &BellReceiver,
    turn: &Turn,
    until: Option<Instant>,
    now: Instant,
) -> bool {
    let held = turn.holds_acks.then(|| now + HELD_FOR);
    let deadline = turn.deadline.into_iter().chain(held).chain(until).min();
    let left = deadline.map(|at| at.saturating_since(now));
    let Ok(waited) = wait(&shared.io, turn.blocked, Some(rings.handle()), left) else {
        return true;
    };
    if waited.rung {
        rings.clear();
    }
    waited.error
}
