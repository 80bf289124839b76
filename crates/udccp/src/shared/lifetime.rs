//! Connections: handshake, events, settings, end.

use std::task::Poll;
use std::time::Duration;

use udccp_base::Instant;
use udccp_proto::{CloseReason, State};

use super::calls::stopped;
use super::core::Core;
use super::handle::ConnHandle;
use super::waiters::{WaitFor, Waiter};
use crate::io::Io;
use crate::{ConnectionEvent, ConnectionStats, Error, QueuePolicy, ReceiverState, SenderState};

impl ConnHandle {
    /// Limits the packets of an accepted connection to the MTU of the route to its client.
    pub(super) fn fit_to_route(&self) {
        let shared = self.shared();
        let route = shared.io.route_to(shared.clock.now(), self.tuple.remote);
        if let Some(mtu) = route.ok().and_then(|r| r.mtu).filter(|&mtu| mtu < self.path_mtu) {
            let _ = shared.with(|core, _, now| core.endpoint.set_path_mtu(now, self.id, mtu));
        }
    }

    /// Waits for the end of the handshake.
    pub(crate) fn poll_connected(&self, waiter: Waiter<'_>) -> Poll<Result<(), Error>> {
        self.poll_with(waiter, |core, _, _| {
            let stopped_now = core.driver.stopped;
            let Some(conn) = core.conns.get_mut(self.id) else {
                return Poll::Ready(Err(Error::Closed));
            };
            if conn.connected {
                return Poll::Ready(Ok(()));
            }
            if let Some(reason) = conn.ended {
                let e = Error::handshake(reason, self.peer(), self.service);
                return Poll::Ready(Err(e));
            }
            if stopped_now {
                return Poll::Ready(Err(stopped()));
            }
            conn.waiting.add(WaitFor::Other, waiter);
            Poll::Pending
        })
    }

    /// Stops reading.
    pub(crate) fn shutdown_read(&self) {
        let _ = self.with(|core, io, now| {
            core.endpoint.shutdown_read(now, self.id);
            if let Some(conn) = core.conns.get_mut(self.id) {
                conn.read_closed = true;
                conn.waiting.wake(WaitFor::Message, &mut core.wake);
            }
            // Sends what the full queue held back, so that the peer continues to send and is told
            // that nobody reads.
            core.flush(io, now);
        });
    }

    /// Sets whether the application can hardly keep up.
    pub(crate) fn set_slow_receiver(&self, is_slow: bool) {
        let _ = self.with(|core, _, now| core.endpoint.set_slow_receiver(now, self.id, is_slow));
    }

    /// The path has changed, and perhaps the interface.
    pub(crate) fn path_changed(&self) {
        let _ = self.with(|core, io, now| {
            io.forget_route_to(self.tuple.remote);
            let route = io.route_to(now, self.tuple.remote);
            match route.ok().and_then(|route| route.mtu) {
                // The handshake may have used a route with a smaller MTU.
                Some(mtu) => core.endpoint.path_changed_to(now, self.id, mtu.min(self.path_mtu)),
                None => core.endpoint.path_changed(now, self.id),
            }
            core.flush(io, now);
        });
    }

    /// The Error Text of the peer's Reset.
    pub(crate) fn reset_text(&self) -> Option<String> {
        let text = self.with(|core, _, _| core.endpoint.reset_text(self.id).map(str::to_owned));
        text.ok().flatten()
    }

    /// The next event of the connection; `None` at its end.
    pub(crate) fn poll_event(&self, waiter: Waiter<'_>) -> Poll<Option<ConnectionEvent>> {
        let event = self.poll_with(waiter, |core, _, _| {
            let stopped_now = core.driver.stopped;
            let Some(conn) = core.conns.get_mut(self.id) else { return Poll::Ready(Ok(None)) };
            if let Some(event) = conn.events.pop_front() {
                return Poll::Ready(Ok(Some(event)));
            }
            if conn.ended.is_some() || stopped_now {
                return Poll::Ready(Ok(None));
            }
            conn.waiting.add(WaitFor::Other, waiter);
            Poll::Pending
        });
        event.map(|event| event.ok().flatten())
    }

    /// Starts an orderly close.
    pub(crate) fn close(&self) {
        let _ = self.with(|core, io, now| {
            core.close(now, self.id);
            self.flush_close(core, io, now);
        });
    }

    /// Sends a Close, or leaves it to the driver with the rest of a burst. If the end of the
    /// process does not close connections, it is sent at once, because the driver might not get to
    /// it.
    pub(super) fn flush_close(&self, core: &mut Core, io: &Io, now: Instant) {
        if self.shared().closes_at_exit() {
            core.flush_change(io, now);
        } else {
            core.flush(io, now);
        }
    }

    /// Ends the connection at once.
    pub(crate) fn abort(&self) {
        let _ = self.with(|core, io, now| {
            core.endpoint.abort(now, self.id);
            core.flush(io, now);
        });
    }

    /// Waits for the end of the connection.
    pub(crate) fn poll_ended(&self, waiter: Waiter<'_>) -> Poll<Result<(), Error>> {
        self.poll_end(waiter, false)
    }

    /// Waits for the end of the connection or, with `of_close`, until the time to confirm a close
    /// is over.
    fn poll_end(&self, waiter: Waiter<'_>, of_close: bool) -> Poll<Result<(), Error>> {
        self.poll_with(waiter, |core, _, _| {
            let stopped_now = core.driver.stopped;
            let Some(conn) = core.conns.get_mut(self.id) else {
                return Poll::Ready(Ok(()));
            };
            match conn.ended {
                Some(reason) if reason.is_orderly() => Poll::Ready(Ok(())),
                Some(reason) => Poll::Ready(Err(Error::Lost(reason))),
                None if stopped_now => Poll::Ready(Err(stopped())),
                None if of_close && core.endpoint.is_close_unconfirmed(self.id) => {
                    Poll::Ready(Err(Error::Lost(CloseReason::CloseTimeout)))
                }
                None => {
                    conn.waiting.add(WaitFor::Other, waiter);
                    Poll::Pending
                }
            }
        })
    }

    /// Waits for the end of a close, as long as the peer has time to confirm it. Reports whether
    /// everything queued was sent before.
    pub(crate) fn poll_closed(&self, waiter: Waiter<'_>) -> Poll<Result<(), Error>> {
        match self.poll_end(waiter, true) {
            Poll::Ready(Ok(())) => {
                let unsent = self.stats().map_or(0, |s| s.counters.drops.send_ended);
                Poll::Ready(match unsent {
                    0 => Ok(()),
                    messages => Err(Error::Unsent { messages }),
                })
            }
            other => other,
        }
    }

    /// Sets the time that a close may take.
    pub(crate) fn set_linger(&self, linger: Duration) {
        self.shared().note_linger(linger.into());
        let linger = linger.into();
        let _ = self.with(|core, _, now| core.endpoint.set_close_linger(now, self.id, linger));
    }

    pub(crate) fn linger(&self) -> Option<Duration> {
        let linger = self.with(|core, _, _| core.endpoint.close_linger(self.id));
        linger.ok().flatten().map(|linger| linger.to_std())
    }

    /// State of the sender half of congestion control.
    pub(crate) fn sender_state(&self) -> Option<SenderState> {
        let metrics = self.with(|core, _, _| core.endpoint.sender_metrics(self.id));
        metrics.ok().flatten().map(SenderState::of)
    }

    /// State of the receiver half.
    pub(crate) fn receiver_state(&self) -> Option<ReceiverState> {
        let metrics = self.with(|core, _, now| core.endpoint.receiver_metrics(now, self.id));
        metrics.ok().flatten().map(ReceiverState::of)
    }

    /// Limits the send queue.
    pub(crate) fn set_send_queue(&self, bytes: usize, messages: usize) {
        let _ = self.with(|core, io, now| {
            core.endpoint.set_send_queue(now, self.id, messages, bytes);
            self.wake_senders(core);
            core.flush(io, now);
        });
    }

    pub(crate) fn set_queue_policy(&self, policy: QueuePolicy) {
        let _ = self.with(|core, _, now| {
            core.endpoint.set_queue_policy(now, self.id, policy);
            self.wake_senders(core);
        });
    }

    /// The new limits may leave room. The endpoint reports room only when a queue has drained.
    fn wake_senders(&self, core: &mut Core) {
        if let Some(conn) = core.conns.get_mut(self.id) {
            conn.waiting.wake(WaitFor::Room, &mut core.wake);
        }
    }

    /// Limits of the send queue in bytes and messages, and what happens when it is full.
    pub(crate) fn send_queue_limits(&self) -> Option<(usize, usize, QueuePolicy)> {
        let limits = self.with(|core, _, _| core.endpoint.send_queue_limits(self.id));
        limits.ok().flatten().map(|((messages, bytes), policy)| (bytes, messages, policy))
    }

    pub(crate) fn set_server_timewait(&self, holds: bool) {
        let _ = self.with(|core, _, now| core.endpoint.set_server_timewait(now, self.id, holds));
    }

    pub(crate) fn server_timewait(&self) -> Option<bool> {
        self.with(|core, _, _| core.endpoint.server_timewait(self.id)).ok().flatten()
    }

    pub(crate) fn coverage(&self) -> Option<(u8, u8)> {
        self.with(|core, _, _| core.endpoint.coverage(self.id)).ok().flatten()
    }

    pub(crate) fn state(&self) -> State {
        let state = self.with(|core, _, _| core.endpoint.state(self.id));
        state.ok().flatten().unwrap_or(State::Closed)
    }

    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.with(|core, _, _| core.conns.get(self.id)?.ended).ok().flatten()
    }

    pub(crate) fn stats(&self) -> Option<ConnectionStats> {
        let stats = self.with(|core, _, _| core.endpoint.stats(self.id)).ok().flatten();
        stats.map(|stats| stats.with_times(|time| time.to_std()))
    }

    pub(crate) fn max_message_size(&self) -> usize {
        let mps = self.with(|core, _, _| core.endpoint.max_message_size(self.id));
        mps.ok().flatten().unwrap_or(0)
    }
}
