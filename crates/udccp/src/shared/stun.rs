//! STUN messages and DCCP on one UDP socket.

use std::net::SocketAddr;
use std::task::Poll;

use bytes::Bytes;
use udccp_base::{Datagram, Instant};

use super::calls::stopped;
use super::core::Core;
use super::handle::Handle;
use super::waiters::{Place, WaitFor, Waiter};
use crate::Error;
use crate::stun::is_stun;

impl Core {
    /// Processes the datagrams of a buffer. Those that the endpoint takes as a run belong to
    /// connections, so they are not STUN messages.
    pub(super) fn take_train(&mut self, now: Instant, mut train: Datagram) {
        while self.endpoint.handle_run(now, &mut train) {
            self.note_received();
            self.take_datagram(now, &train);
            if !train.header.advance(1) {
                break;
            }
        }
        self.note_received();
    }

    /// Passes a datagram to the endpoint, unless it is a STUN message.
    fn take_datagram(&mut self, now: Instant, datagram: &Datagram) {
        if self.claims.is_none() && is_stun(&datagram.header) {
            return self.take_stun(datagram);
        }
        if self.is_ours(now, datagram) {
            self.endpoint.handle_borrowed(now, datagram);
        }
    }

    #[cold]
    fn take_stun(&mut self, datagram: &Datagram) {
        self.stun.push(datagram.header.slice(..), datagram.src);
        self.stun.readers.wake_all(&mut self.wake);
    }
}

impl Handle {
    /// The next STUN message and its sender.
    pub(crate) fn poll_stun(&self, waiter: Waiter<'_>) -> Poll<Result<(Bytes, SocketAddr), Error>> {
        self.start()?;
        self.shared().poll_at(Place::Stun, waiter, |core, _, _| {
            if let Some(message) = core.stun.pop() {
                return Poll::Ready(Ok(message));
            }
            if core.driver.stopped {
                return Poll::Ready(Err(stopped()));
            }
            core.stun.readers.add(WaitFor::Other, waiter);
            Poll::Pending
        })
    }

    /// Sends a STUN message from the UDP port of the endpoint.
    pub(crate) fn send_stun(&self, message: &[u8], to: SocketAddr) -> Result<(), Error> {
        self.shared().check_process()?;
        if !is_stun(message) || self.shared().io.is_raw() {
            let source = std::io::Error::from(std::io::ErrorKind::InvalidInput);
            return Err(Error::Io {
                what: "only STUN messages can be sent next to DCCP, and only over UDP",
                source,
            });
        }
        let sent = self.shared().io.send_non_dccp(message, to);
        sent.map_err(|source| Error::Io { what: "cannot send a STUN message", source })
    }
}
