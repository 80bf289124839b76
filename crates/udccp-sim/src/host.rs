//! Drives one end of a flow and, on the sending side, its application.

use core::net::SocketAddr;

use udccp_base::{Datagram, Instant, Transport};

use crate::application::{Application, FlowStep};

/// When the transport of a host exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// From the start of the run to its end.
    Run,
    /// Not yet: it is made when its pair starts.
    NotStarted,
    /// From the start of its pair to its end.
    Transfer,
    /// No longer.
    Ended,
}

/// One end of a flow.
pub(crate) struct Host {
    pub(crate) transport: Box<dyn Transport>,
    /// Only at senders.
    pub(crate) app: Option<Box<Application>>,
    /// The link towards the network.
    pub(crate) uplink: u32,
    /// Number of the path on which its packets travel.
    pub(crate) path: u32,
    /// Destination of the last packet, to save a look-up.
    pub(crate) last_to: Destination,
    /// Whether deliveries here are reported to the source of the pair.
    pub(crate) tracks_delivery: bool,
    /// Whether its packets may have the Quick-Start option.
    pub(crate) uses_quick_start: bool,
    /// Whether its transport needs to know when packets leave the device.
    pub(crate) watches_device: bool,
    /// When its transport exists.
    pub(crate) lifetime: Lifetime,
    /// Packets that it sent, and packets that arrived here.
    pub(crate) sent: u32,
    pub(crate) arrived: u32,
    /// Application bytes received, and when the last of them arrived.
    pub(crate) delivered_bytes: u64,
    pub(crate) last_delivery: Instant,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    /// The address; 0 for one of IPv6, which is looked up each time.
    ip: u32,
    /// Number of the host.
    pub(crate) host: u32,
    port: u16,
    /// Length of the headers of IP and UDP in bytes.
    headers: u8,
}

impl Destination {
    /// The destination of a datagram, which is this host.
    pub(crate) fn new(datagram: &Datagram, host: u32) -> Self {
        let headers = (datagram.ip_len() - datagram.transport_len()) as u8;
        let ip = match datagram.dst {
            SocketAddr::V4(at) => at.ip().to_bits(),
            SocketAddr::V6(_) => 0,
        };
        Self { ip, host, port: datagram.dst.port(), headers }
    }

    /// That of a datagram over raw IPv4 to no address: no host.
    pub(crate) const NOWHERE: Self = Self { ip: 0, host: u32::MAX, port: 0, headers: 20 };

    /// Whether a datagram to this address is known to go there.
    #[inline(always)]
    pub(crate) fn is_of(&self, at: &SocketAddr) -> bool {
        match at {
            SocketAddr::V4(at) => at.ip().to_bits() == self.ip && at.port() == self.port,
            SocketAddr::V6(_) => false,
        }
    }

    /// Length of the headers of IP and UDP in bytes.
    #[inline(always)]
    pub(crate) fn headers(&self) -> usize {
        self.headers.into()
    }
}

/// The host of the pair's sender, whose source is the application at both ends.
pub(crate) const fn sender_of_pair(host: usize) -> usize {
    host & !1
}

impl Host {
    /// When there is something to do without a packet from the network.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Instant {
        let [timer, app] = self.poll_timeouts();
        timer.min(app)
    }

    /// As [`Self::poll_timeout`], for the transport and for the application.
    #[inline]
    pub(crate) fn poll_timeouts(&self) -> [Instant; 2] {
        let timer = self.transport.poll_timeout().unwrap_or(Instant::MAX);
        [timer, self.app.as_ref().map_or(Instant::MAX, |app| app.poll_timeout())]
    }

    /// Starts and stops the application, and passes the time to the transport. `timers` is the
    /// result of [`Self::poll_timeouts`].
    pub(crate) fn handle_timeout(&mut self, now: Instant, timers: [Instant; 2]) {
        let [mut timer, app_timer] = timers;
        if let Some(app) = self.app.as_mut().filter(|_| app_timer <= now) {
            while let Some(step) = app.poll_step(now) {
                match step {
                    FlowStep::Open => {
                        self.transport.open(now);
                        app.source_mut().start(now);
                    }
                    FlowStep::Close => self.transport.close(now),
                }
            }
            timer = self.transport.poll_timeout().unwrap_or(Instant::MAX);
        }
        if timer <= now {
            self.transport.handle_timeout(now);
        }
    }

    /// Lets the application offer its data. Returns whether the transport accepted any.
    #[inline]
    pub(crate) fn feed(&mut self, now: Instant) -> bool {
        self.app.as_mut().is_some_and(|app| app.feed(now, self.transport.as_mut()))
    }

    /// Whether the transport has nothing to send, and its timer is due then.
    pub(crate) fn is_idle_until(&mut self, now: Instant, due: Instant) -> bool {
        self.transport.poll_transmit(now).is_none()
            && self.transport.poll_timeout().unwrap_or(Instant::MAX) == due
    }

    /// Counts application bytes that arrived.
    #[inline]
    pub(crate) fn count_delivered(&mut self, now: Instant, bytes: u64) {
        if bytes > 0 {
            self.delivered_bytes += bytes;
            self.last_delivery = now;
        }
    }

    /// Application bytes that arrived since the last call.
    #[inline]
    pub(crate) fn take_delivered(&mut self, now: Instant) -> u64 {
        let bytes = self.transport.take_delivered(now);
        self.count_delivered(now, bytes);
        bytes
    }
}
