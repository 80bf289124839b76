//! Closes open connections when nobody else drives the socket: the runtime has ended, or the
//! process is about to.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use udccp_base::Instant;

use super::{Shared, Turn};
use crate::io::{Receiver, wait};

/// Poll interval. Another driver may read from the same socket, and nothing reports what it did.
const LOOK_AGAIN: udccp_base::Duration = udccp_base::Duration::from_millis(5);

impl Shared {
    /// Records the linger time of a connection of this socket.
    pub(super) fn note_linger(&self, linger: udccp_base::Duration) {
        self.linger_nanos.fetch_max(linger.as_nanos(), Ordering::Relaxed);
    }

    /// The longest linger time of any connection of this socket.
    pub(crate) fn linger(&self) -> Duration {
        Duration::from_nanos(self.linger_nanos.load(Ordering::Relaxed))
    }

    /// Whether open connections are closed when the process ends.
    pub(super) fn closes_at_exit(&self) -> bool {
        self.closes_at_exit
    }

    /// Whether a connection of this process has to be closed at its end. Does not wait for the
    /// lock: if in doubt, the answer is yes.
    pub(crate) fn has_open_connections(&self) -> bool {
        self.closes_at_exit
            && self.process.is_current()
            && self.core.try_lock().map_or(true, |core| !core.is_idle())
    }

    /// Whether this is a socket of this process on this UDP port that is no longer used.
    pub(crate) fn is_over_at(&self, udp_port: u16) -> bool {
        !self.io.is_raw()
            && self.io.local_addr().port() == udp_port
            && self.process.is_current()
            && self.lock().is_finished()
    }

    /// Starts a thread that closes all connections. `kept` is dropped at its end.
    pub(crate) fn spawn_close_thread(
        self: &Arc<Self>,
        kept: impl Send + 'static,
    ) -> io::Result<()> {
        let shared = Arc::clone(self);
        let work = move || {
            shared.close_all_connections();
            drop(kept);
        };
        std::thread::Builder::new().name("udccp-close".into()).spawn(work).map(drop)
    }

    /// Closes every connection in order, and drives the socket until they have ended or the longest
    /// linger time is over. Connections that are still open then are reset, so that peers notice.
    fn close_all_connections(&self) {
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
