//! An RTP session over one DCCP connection, or over two.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use udccp::{Connection, Outgoing, TrySendError};

use crate::Error;
use crate::keep_alive::KeepAlive;
use crate::reports::{Event, is_rtcp};
use crate::sdp::Profile;
use crate::state::{SessionStats, Setup, State};

/// Header of an RTP packet without contributors or extension.
const HEADER_BYTES: usize = 12;
/// RFC 5762 section 4.1: how often an idle connection sends something.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// RFC 3550 section 6.2: the recommended smallest interval of RTCP.
const LEAST_INTERVAL: Duration = Duration::from_secs(5);
/// Default of `lifetime`: later, an RTP packet is useless.
const LIFETIME: Duration = Duration::from_millis(200);
/// Default of `bandwidth`: G.711 with its headers.
const BANDWIDTH_BITS_PER_SEC: u32 = 80_000;
/// RTCP has priority over queued media.
const RTCP_PRIORITY: u32 = 1;
/// Checksum Coverage: DCCP's header and options, and the 3 words of the RTP header (RFC 4340
/// section 9.2).
const RTP_HEADER_COVERAGE: u8 = 1 + (HEADER_BYTES / 4) as u8;
/// Longest interval of RTCP, which stands for never.
const LONGEST_INTERVAL: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Shortest mean interval of RTCP: less would be all that a path carries.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(20);
/// Shortest idle time before a keep-alive. Bindings last for seconds at least.
const SHORTEST_KEEP_ALIVE: Duration = Duration::from_millis(100);
/// RFC 3550 section 6.5: the length of a name is one byte.
const MAX_NAME_BYTES: usize = 255;
/// How often a report that waits to be sent is looked after.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Seconds from NTP's epoch, 1900, to that of Unix.
const NTP_UNIX_SECONDS: u64 = 2_208_988_800;

/// Settings of a session.
#[derive(Clone, Debug)]
pub struct RtpOptions {
    payload_type: u8,
    clock_rate: u32,
    lifetime: Duration,
    bandwidth: u32,
    least_interval: Duration,
    keep_alive: Duration,
    name: Option<String>,
    ssrc: Option<u32>,
}

impl RtpOptions {
    /// Settings for a payload type (RFC 3551 section 6 lists the static ones) and its clock rate in
    /// Hz.
    pub fn new(payload_type: u8, clock_rate: u32) -> Self {
        Self {
            payload_type,
            clock_rate,
            lifetime: LIFETIME,
            bandwidth: BANDWIDTH_BITS_PER_SEC,
            least_interval: LEAST_INTERVAL,
            keep_alive: KEEP_ALIVE,
            name: None,
            ssrc: None,
        }
    }

    /// How long a packet may wait to be sent before it is dropped (default 200 ms).
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// The session bandwidth in bit/s, headers included, of which RTCP takes 5 % (default 80,000).
    #[must_use]
    pub fn bandwidth(mut self, bits_per_sec: u32) -> Self {
        self.bandwidth = bits_per_sec;
        self
    }

    /// The smallest mean interval of RTCP (default 5 s, RFC 3550 section 6.2; profiles with
    /// feedback allow less, here at least 20 ms). The first report comes after half of it, and
    /// intervals vary randomly.
    #[must_use]
    pub fn least_interval(mut self, interval: Duration) -> Self {
        self.least_interval = interval;
        self
    }

    /// Idle time after which an empty packet is sent to keep NAT bindings open (default 15 s; zero:
    /// never; otherwise at least 100 ms).
    #[must_use]
    pub fn keep_alive(mut self, idle: Duration) -> Self {
        self.keep_alive = idle;
        self
    }

    /// Our canonical name, `user@host` (default: a random one, RFC 7022). It is cut to 255 bytes.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Our source identifier, SSRC (default: random). If another source has the same, we choose a
    /// new one (RFC 3550 section 8.2); [`SessionStats::ssrc`] is the current one.
    #[must_use]
    pub fn ssrc(mut self, ssrc: u32) -> Self {
        self.ssrc = Some(ssrc);
        self
    }

    /// `shares`: RTP and RTCP share a connection and are distinguished by the payload type.
    fn setup(&self, shares: bool) -> Result<Setup, Error> {
        // RFC 5761 section 4: 64 to 95 look like RTCP.
        if self.payload_type > 127 || shares && (64..96).contains(&self.payload_type) {
            return Err(Error::PayloadType(self.payload_type));
        }
        if self.clock_rate == 0 {
            return Err(Error::ClockRate);
        }
        let random = || getrandom::u32().map_err(|e| Error::Random(e.to_string()));
        let name = match &self.name {
            Some(name) => cut(name, MAX_NAME_BYTES).to_owned(),
            None => format!("{:08x}{:08x}{:08x}", random()?, random()?, random()?),
        };
        Ok(Setup {
            ssrc: self.ssrc.map_or_else(random, Ok)?,
            spare_ssrc: random()?,
            sequence: random()? as u16,
            timestamp_offset: random()?,
            name,
            payload_type: self.payload_type,
            clock_rate: self.clock_rate,
            bandwidth: self.bandwidth,
            minimum: self.least_interval.clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL),
        })
    }
}

//= 5762-4.1-6
//= 5762-4.1-7
//= 5762-4.1-8
//= 5762-4.5-1
//= 5762-6-1
//= 5762-6-2
/// Settings of a connection for a payload format that can use damaged data. The checksum of sent
/// packets covers only the headers of DCCP and RTP, and received packets need cover no more. Both
/// sides need this. Pass it to the connection or listener of the session.
///
/// # Errors
/// [`Error::PartialChecksum`] for a profile with authentication, which would reject damaged data.
pub fn partial_checksums(
    options: udccp::Options,
    profile: Profile,
) -> Result<udccp::Options, Error> {
    if profile.is_secure() {
        return Err(Error::PartialChecksum(profile));
    }
    Ok(options.send_cscov(RTP_HEADER_COVERAGE).min_cscov(RTP_HEADER_COVERAGE))
}

/// An RTP session (RFC 3550) over DCCP (RFC 5762).
///
/// All methods take `&self`, so that one task can send and another receive. Reports are sent in the
/// background; the reports of others are received by [`Self::recv`], like media. A packet counts as
/// arrived when `recv` returns it, so a task that reads late adds its own delay to the jitter.
/// Dropping the session closes its connections in order; [`Self::close`] sends a BYE first.
#[derive(Debug)]
pub struct RtpSession {
    shared: Arc<Shared>,
    lifetime: Duration,
    pending: Mutex<VecDeque<Event>>,
    rtcp_ended: AtomicBool,
    /// Aborted on drop: they may be waiting for a path that has failed, and would keep the
    /// connections open.
    tasks: Vec<AbortHandle>,
}

#[derive(Debug)]
struct Shared {
    rtp: Connection,
    /// `None`: RTCP uses the connection of RTP.
    rtcp: Option<Connection>,
    state: Mutex<State>,
}

impl RtpSession {
    //= 5762-4.3-1
    /// A session with RTP and RTCP on one connection, as RFC 5762 section 4.3 recommends.
    ///
    /// # Errors
    /// [`Error::PayloadType`], [`Error::ClockRate`] or [`Error::Random`].
    pub fn new(connection: Connection, options: &RtpOptions) -> Result<Self, Error> {
        Self::start(connection, None, options)
    }

    //= 5762-5.4-3
    /// A session with RTCP on a connection of its own, for payload types that look like RTCP, or a
    /// peer that cannot share a connection.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_rtcp(
        rtp: Connection,
        rtcp: Connection,
        options: &RtpOptions,
    ) -> Result<Self, Error> {
        Self::start(rtp, Some(rtcp), options)
    }

    fn start(
        rtp: Connection,
        rtcp: Option<Connection>,
        options: &RtpOptions,
    ) -> Result<Self, Error> {
        let setup = options.setup(rtcp.is_none())?;
        let state = Mutex::new(State::new(setup, Instant::now()));
        let shared = Arc::new(Shared { rtp, rtcp, state });
        let mut tasks = vec![tokio::spawn(reports(Arc::downgrade(&shared))).abort_handle()];
        let idle = options.keep_alive;
        for is_rtcp in [false, true] {
            if !idle.is_zero() && (!is_rtcp || shared.rtcp.is_some()) {
                let watch = KeepAlive::new(idle.max(SHORTEST_KEEP_ALIVE), Instant::now());
                let task = tokio::spawn(keep_alive(Arc::downgrade(&shared), is_rtcp, watch));
                tasks.push(task.abort_handle());
            }
        }
        Ok(Self {
            shared,
            lifetime: options.lifetime,
            pending: Mutex::default(),
            rtcp_ended: AtomicBool::new(false),
            tasks,
        })
    }

    //= 5762-4.1-1
    //= 5762-4.1-4
    /// Sends a payload as one packet, waiting while DCCP's send queue is full. `timestamp` is in
    /// units of the clock, from any start; a random offset is added (RFC 3550 section 5.1).
    ///
    /// Cancel safe: the packet is sent whole or not at all.
    ///
    /// # Errors
    /// [`Error::PayloadTooLarge`]; [`Error::Dccp`] if the connection has ended.
    pub async fn send(
        &self,
        timestamp: u32,
        marker: bool,
        payload: impl AsRef<[u8]>,
    ) -> Result<(), Error> {
        let payload = payload.as_ref();
        let (len, max) = (payload.len(), self.max_payload_size());
        if len > max {
            return Err(Error::PayloadTooLarge { len, max });
        }
        let begun = Instant::now();
        loop {
            // A sequence number that was assigned must be sent, so wait for room first.
            self.shared.rtp.writable().await?;
            let mut state = self.shared.state();
            let packet = state.packet(timestamp, marker, payload);
            let lifetime = self.lifetime.saturating_sub(begun.elapsed());
            match self.shared.rtp.try_send(Outgoing::new(packet).lifetime(lifetime)) {
                Ok(()) => {
                    state.packet_sent(Instant::now(), timestamp, len);
                    return Ok(());
                }
                // Another task has used the room.
                Err(TrySendError::Full(_)) => {}
                Err(TrySendError::Failed(udccp::Error::MessageTooLarge { .. })) => {
                    return Err(Error::PayloadTooLarge { len, max: self.max_payload_size() });
                }
                Err(TrySendError::Failed(e)) => return Err(e.into()),
            }
        }
    }

    /// Receives the next packet or report; `None` after the peer has closed the connection and
    /// everything was read. Packets come in order of arrival; the application has to buffer them if
    /// it needs the order of their timestamps.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// [`Error::Dccp`] if the connection was not closed in order.
    pub async fn recv(&self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = lock(&self.pending).pop_front() {
                return Ok(Some(event));
            }
            let (packet, from_rtcp) = match self.next_packet().await {
                Ok(Some(packet)) => packet,
                end => match self.last_rtcp_event() {
                    Some(packet) => (packet, true),
                    None => return end.map(|_| None),
                },
            };
            let now = Instant::now();
            let mut state = self.shared.state();
            if packet.is_empty() {
                // An empty packet only keeps bindings open.
            } else if from_rtcp || (self.shared.rtcp.is_none() && is_rtcp(&packet)) {
                let events = state.receive_rtcp(now, ntp_now(), &packet);
                lock(&self.pending).extend(events);
            } else if let Some(event) = state.receive_packet(now, &packet) {
                return Ok(Some(event));
            }
        }
    }

    /// The next packet, and whether it came from RTCP's connection.
    async fn next_packet(&self) -> Result<Option<(Bytes, bool)>, Error> {
        let rtp = async { Ok(self.shared.rtp.recv().await?.map(|p| (p, false))) };
        match &self.shared.rtcp {
            Some(rtcp) if !self.rtcp_ended.load(Ordering::Relaxed) => tokio::select! {
                packet = rtp => packet,
                packet = rtcp.recv() => match packet {
                    Ok(Some(packet)) => Ok(Some((packet, true))),
                    _ => {
                        self.rtcp_ended.store(true, Ordering::Relaxed);
                        // Nothing to read: the next round waits only for RTP.
                        Ok(Some((Bytes::new(), true)))
                    }
                },
            },
            _ => rtp.await,
        }
    }

    /// Returns what has arrived on RTCP's connection: there may still be a BYE after the end of
    /// RTP's connection.
    fn last_rtcp_event(&self) -> Option<Bytes> {
        self.shared.rtcp.as_ref()?.try_recv().ok()
    }

    /// Sends a BYE with the last report, and closes. No BYE is sent if the session has sent neither
    /// media nor a report (RFC 3550 section 6.3.7), or if it finds no room in the send queue within
    /// the linger time ([`Connection::linger`]).
    ///
    /// # Errors
    /// As [`Connection::close`].
    pub async fn close(&self) -> Result<(), Error> {
        let max = self.shared.control().max_message_size();
        let bye = {
            let mut state = self.shared.state();
            let has_sent = state.has_sent();
            let bye = || state.report(Instant::now(), ntp_now(), Some("session ends"), max);
            has_sent.then(bye).flatten()
        };
        if let Some(bye) = bye {
            let control = self.shared.control();
            // If the path has failed, there may never be room.
            let linger = control.linger().unwrap_or_default();
            // If the connection has already ended, no BYE is needed.
            if let Ok(Ok(())) = tokio::time::timeout(linger, control.send(bye)).await {
                self.shared.state().counts.reports_sent += 1;
            }
        }
        if let Some(rtcp) = &self.shared.rtcp {
            let _ = rtcp.close().await;
        }
        Ok(self.shared.rtp.close().await?)
    }

    /// The largest payload in bytes that fits in one packet of this path now.
    pub fn max_payload_size(&self) -> usize {
        self.shared.rtp.max_message_size().saturating_sub(HEADER_BYTES)
    }

    /// Counters of this session and of the other sources.
    pub fn stats(&self) -> SessionStats {
        let stats = self.shared.state().stats();
        let expired = self.shared.rtp.stats().map_or(0, |s| s.counters.drops.send_expired);
        SessionStats { packets_expired: expired, ..stats }
    }

    /// The connection that carries RTP.
    pub fn connection(&self) -> &Connection {
        &self.shared.rtp
    }
}

impl Drop for RtpSession {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The connection that carries RTCP.
    fn control(&self) -> &Connection {
        self.rtcp.as_ref().unwrap_or(&self.rtp)
    }

    //= 5762-4.2-1
    /// Sends the report that is due, as soon as congestion control allows.
    async fn send_report(&self) -> Result<(), udccp::Error> {
        let due = Instant::now();
        let max = self.control().max_message_size();
        let report = self.state().report(due, ntp_now(), None, max);
        let Some(report) = report else {
            self.state().report_passed(due);
            return Ok(());
        };
        let (len, before) = (report.len(), self.control_packets_sent());
        match self.control().send(Outgoing::new(report).priority(RTCP_PRIORITY)).await {
            // The path MTU is too small for our name, but may grow.
            Err(udccp::Error::MessageTooLarge { .. }) => {
                self.state().report_passed(due);
                return Ok(());
            }
            sent => sent?,
        }
        self.wait_report_sent(before).await?;
        self.state().report_left(Instant::now(), len, due);
        Ok(())
    }

    /// Packets sent on the connection that carries RTCP.
    fn control_packets_sent(&self) -> u64 {
        self.control().stats().map_or(0, |stats| stats.counters.data_packets_sent)
    }

    /// Waits until a report has left, before which so many packets had. It goes ahead of media, of
    /// which some may be waiting at all times.
    async fn wait_report_sent(&self, before: u64) -> Result<(), udccp::Error> {
        while self.control_packets_sent() == before {
            let flushed = tokio::time::timeout(LOOK_AGAIN, self.control().flushed()).await;
            if let Ok(flushed) = flushed {
                return flushed;
            }
        }
        Ok(())
    }

    /// When the next report would be due if it were scheduled now.
    fn next_report(&self) -> Instant {
        let chance = f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / 4_294_967_296.0;
        let state = self.state();
        state.last_rtcp + state.interval().randomised(chance)
    }
}

/// Sends reports until the session is dropped.
async fn reports(session: Weak<Shared>) {
    let Some(first) = session.upgrade() else { return };
    let mut due = first.next_report();
    drop(first);
    loop {
        tokio::time::sleep_until(due).await;
        let Some(shared) = session.upgrade() else { return };
        // RFC 3550 section 6.3.6: what was learned meanwhile may postpone it.
        due = shared.next_report();
        if due <= Instant::now() {
            if shared.send_report().await.is_err() {
                return;
            }
            due = shared.next_report();
        }
    }
}

//= 5762-4.1-3
/// Sends an empty packet when nothing else was sent for long, so that NATs keep their bindings.
async fn keep_alive(session: Weak<Shared>, rtcp: bool, mut watch: KeepAlive) {
    loop {
        let Some(shared) = session.upgrade() else { return };
        let connection = if rtcp { shared.control() } else { &shared.rtp };
        let Some(stats) = connection.stats() else { return };
        if watch.is_due(stats.counters.data_packets_sent, Instant::now()) {
            if connection.send(Bytes::new()).await.is_err() {
                return;
            }
            shared.state().counts.keep_alives_sent += 1;
        }
        drop(shared);
        tokio::time::sleep(watch.pause()).await;
    }
}

/// The beginning of a text, at most `most` bytes.
fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere cannot leave the data inconsistent: it happens between two changes.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The wall-clock time as an NTP timestamp (RFC 3550 section 4).
fn ntp_now() -> u64 {
    let unix = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let fraction = (u64::from(unix.subsec_nanos()) << 32) / 1_000_000_000;
    (unix.as_secs().wrapping_add(NTP_UNIX_SECONDS) << 32) | fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_reach_the_session() {
        let (bandwidth, least) = (64_000, Duration::from_millis(360));
        let options = RtpOptions::new(0, 8000).bandwidth(bandwidth).least_interval(least);
        let setup = options.ssrc(7).name("we@here").setup(true).unwrap();
        assert_eq!((setup.bandwidth, setup.minimum), (bandwidth, least));
        assert_eq!((setup.ssrc, setup.name.as_str()), (7, "we@here"));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let cuts = [0, 1, 2, 3, 9].map(|most| cut("aäb", most));
        assert_eq!(cuts, ["", "a", "a", "aä", "aäb"]);
    }

    #[test]
    fn the_wall_clock_counts_from_1900_in_parts_of_2_to_the_32() {
        let unix = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
        // RFC 5905 section 6: 1970 began 2,208,988,800 s after 1900.
        let ours = || ntp_now() as f64 / 4_294_967_296.0 - 2_208_988_800.0;
        let (before, now, after) = (unix(), ours(), unix());
        assert!(before - 1e-5 <= now && now <= after + 1e-5, "{before} {now} {after}");
    }
}
