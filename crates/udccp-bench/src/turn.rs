//! The hosts, length and sizes of a measurement.

use std::time::Duration;

use crate::network::Network;

/// Bytes of a bulk message.
pub(crate) const BULK_BYTES: usize = 1200;
/// Messages sent at once in bulk.
pub(crate) const BULK_BATCH: usize = 128;
/// Bytes of a message for round trips.
pub(crate) const PING_BYTES: usize = 100;
/// Concurrent connections for the handshake load.
pub(crate) const HANDSHAKES_AT_ONCE: usize = 32;
/// Connections with a pending question at all times.
pub(crate) const QUESTIONS_AT_ONCE: usize = 100;
/// Bytes of a message for the load with many connections.
pub(crate) const MANY_BYTES: usize = 200;
/// Time for the last messages to arrive.
pub(crate) const SETTLE: Duration = Duration::from_millis(100);

/// A turn of one peer.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The hosts.
    pub(crate) network: Network,
    /// Length in seconds.
    pub(crate) seconds: f64,
    /// Number of connections for loads with many.
    pub(crate) connections: usize,
}
