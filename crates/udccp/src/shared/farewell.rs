//! Closing what is still open where nobody else drives the socket: the runtime has ended, or the
//! process is about to.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use udccp_base::Instant;

use super::{Shared, Turn};
use crate::io::{Receiver, wait};

/// Another driver may read from the same socket, and nothing tells of what it did.
const LOOK_AGAIN: udccp_base::Duration = udccp_base::Duration::from_millis(5);

impl Shared {
    /// A connection of this socket may take so long for its close.
    pub(super) fn note_linger(&self, linger: udccp_base::Duration) {
        self.linger_nanos.fetch_max(linger.as_nanos(), Ordering::Relaxed);
    }

    /// The longest that any connection of this socket may take for its close.
    pub(crate) fn linger(&self) -> Duration {
        Duration::from_nanos(self.linger_nanos.load(Ordering::Relaxed))
    }

    /// Whether what is open is closed when the process ends.
    pub(super) fn closes_at_exit(&self) -> bool {
        self.closes_at_exit
    }

    /// Whether a connection of this process is to be closed at its end. In doubt, yes: it does not
    /// wait.
    pub(crate) fn has_open_connections(&self) -> bool {
        self.closes_at_exit
            && self.process.is_this()
            && self.core.try_lock().map_or(true, |core| !core.is_idle())
    }

    /// Whether it is a socket of this process at this UDP port that nobody will use again.
    pub(crate) fn is_over_at(&self, udp_port: u16) -> bool {
        !self.io.is_raw()
            && self.io.local_addr().port() == udp_port
            && self.process.is_this()
            && self.lock().is_finished()
    }

    /// Starts a thread that closes everything; `kept` is dropped at its end.
    pub(crate) fn see_off_on_a_thread(
        self: &Arc<Self>,
        kept: impl Send + 'static,
    ) -> io::Result<()> {
        let shared = Arc::clone(self);
        let work = move || {
            shared.see_off();
            drop(kept);
        };
        std::thread::Builder::new().name("udccp-close".into()).spawn(work).map(drop)
    }

    /// Closes every connection in order and drives the socket until that is done, or the longest
    /// time to linger is over. What is open then is reset, so that the peer knows.
    fn see_off(&self) {
        let begun = self.with(|core, io, now| {
            core.endpoint.close_all(now);
            core.flush(io, now);
            now
        });
        let Ok(begun) = begun else { return };
        let until = begun + self.linger().into();
        let mut rx = Receiver::new(&self.io);
        while self.with(|core, _, now| !core.is_idle() && now < until).unwrap_or(false) {
            let turn = self.turn(&mut rx, Receiver::read, true);
            if !turn.more {
                self.wait_for_socket(&turn, until);
            }
        }
        let cut_off = self.with(|core, io, now| {
            let open = core.endpoint.live_connections();
            core.endpoint.abort_all(now);
            core.flush(io, now);
            open
        });
        if let Ok(open @ 1..) = cut_off {
            tracing::warn!("{open} connections were reset: they did not close in time");
        }
    }

    fn wait_for_socket(&self, turn: &Turn, until: Instant) {
        let due = turn.deadline.map_or(until, |due| due.min(until));
        let left = due.saturating_since(self.clock.now()).min(LOOK_AGAIN);
        let _ = wait(&self.io, turn.blocked, None, Some(left));
    }
}
