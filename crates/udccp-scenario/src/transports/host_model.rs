//! What a real host does to a DCCP endpoint: timers, the buffer of its socket, an old kernel.

use udccp_base::{DataSize, Datagram, Instant};

use super::old_ack_vector::OldAckVector;
use super::send_buffer::SendBuffer;
use super::timers::Timers;
use crate::schema::{DccpOptions, DccpProfile};

/// Send buffer of a socket of Linux 2.6.22 (`sysctl_wmem_default`).
const OLD_SEND_BUFFER_BYTES: u64 = 108 << 10;

/// Room that Linux 2.6.22 leaves for options in every data packet (`dccp_sync_mss`).
const OLD_OPTION_BYTES: usize = 40;

/// The parts of a host that have to see every packet and every call.
#[derive(Debug)]
pub(super) struct HostModel {
    /// Only where the host cannot wake at any instant.
    timers: Option<Timers>,
    send_buffer: Option<SendBuffer>,
    /// Only in the profile of an old kernel.
    ack_vector: Option<OldAckVector>,
}

impl HostModel {
    /// The host that the options describe; `None` if it adds nothing to the endpoint.
    pub(super) fn new(options: &DccpOptions) -> Option<Box<Self>> {
        let is_old = options.profile == Some(DccpProfile::Linux2622);
        let buffer = options.send_buffer.map(DataSize::bytes);
        let buffer = buffer.or(is_old.then_some(OLD_SEND_BUFFER_BYTES));
        let host = Self {
            timers: Timers::unless_exact(options),
            send_buffer: buffer.map(SendBuffer::new),
            ack_vector: is_old.then(OldAckVector::default),
        };
        let is_plain =
            host.timers.is_none() && host.send_buffer.is_none() && host.ack_vector.is_none();
        (!is_plain).then(|| Box::new(host))
    }

    /// A packet arrives. Returns whether the host accepts it.
    pub(super) fn accepts(&mut self, now: Instant, datagram: &Datagram) -> bool {
        let accepts = self.ack_vector.as_mut().is_none_or(|vector| vector.takes(datagram));
        if accepts && let Some(timers) = &mut self.timers {
            timers.arrived(now);
        }
        accepts
    }

    /// The host wakes. `due` returns the endpoint's next timer; it is called only if needed.
    pub(super) fn wake(&mut self, now: Instant, due: impl FnOnce() -> Option<Instant>) {
        if let Some(timers) = &mut self.timers {
            timers.wake(now, due);
        }
    }

    /// Whether the endpoint may send now. If not, or if it has nothing to send, the host sleeps.
    pub(super) fn may_send(&mut self, now: Instant) -> bool {
        if let Some(timers) = &mut self.timers {
            timers.asleep_from(now);
        }
        self.send_buffer.as_mut().is_none_or(|buffer| buffer.takes(now))
    }

    /// The endpoint sent a packet.
    pub(super) fn on_sent(&mut self, is_client: bool, datagram: &Datagram) {
        if let Some(timers) = self.timers.as_mut().filter(|_| is_client) {
            timers.message_left();
        }
        if let Some(vector) = &mut self.ack_vector {
            vector.on_sent(datagram);
        }
    }

    /// Until when a full send buffer keeps the endpoint from sending.
    pub(super) fn blocked_until(&self) -> Option<Instant> {
        self.send_buffer.as_ref().and_then(SendBuffer::blocked_until)
    }

    /// When the host wakes for a timer with this deadline.
    pub(super) fn fire(&self, due: Instant) -> Instant {
        self.timers.as_ref().map_or(due, |timers| timers.fire(due))
    }

    /// Whether nothing happens at the host until the endpoint has something to do.
    pub(super) fn is_spent(&self) -> bool {
        self.blocked_until().is_none() && self.timers.as_ref().is_none_or(Timers::are_fixed)
    }

    /// Whether the host follows what its device sends.
    pub(super) const fn watches_device(&self) -> bool {
        self.send_buffer.is_some()
    }

    /// The device took a packet of this length, which will have left at `leaves`.
    pub(super) fn on_device(&mut self, ip_len: u32, leaves: Instant) {
        if let Some(buffer) = &mut self.send_buffer {
            buffer.on_device(ip_len, leaves);
        }
    }

    /// The longest message, where the endpoint takes `most` bytes.
    pub(super) fn max_payload(&self, most: usize) -> usize {
        if self.ack_vector.is_some() { most.saturating_sub(OLD_OPTION_BYTES) } else { most }
    }
}
