//! Emits `tracing` events for connections: their start and end, and events in between, but nothing
//! for single packets.

use udccp_proto::{CloseReason, ConnectionId, Endpoint, Event, EventKind};

use crate::Address;

/// Logs an event of a connection.
pub(super) fn event(endpoint: &Endpoint, event: &Event) {
    match event.kind {
        EventKind::Readable | EventKind::Writable => {}
        EventKind::Connected => opened(endpoint, event.id, "client"),
        EventKind::Incoming(_) => opened(endpoint, event.id, "server"),
        EventKind::Closed(reason) => closed(endpoint, event.id, reason),
        // There may be one for each message.
        EventKind::MessageDropped { reason, bytes } => {
            tracing::trace!(peer = %peer(endpoint, event.id), ?reason, bytes, "message dropped");
        }
        EventKind::MessageFate { token, fate } => {
            tracing::trace!(peer = %peer(endpoint, event.id), token, ?fate, "fate of a message");
        }
        EventKind::MaxMessageSize { bytes } => {
            let peer = peer(endpoint, event.id);
            tracing::debug!(%peer, max_message_bytes = bytes, "path explored");
        }
        other => tracing::debug!(peer = %peer(endpoint, event.id), event = ?other, "event"),
    }
}

fn opened(endpoint: &Endpoint, id: ConnectionId, role: &str) {
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    let Some(stats) = endpoint.stats(id) else { return };
    tracing::info!(
        peer = %peer(endpoint, id),
        role,
        service = endpoint.service(id).map(|service| service.to_string()),
        sender_ccid = stats.tx_ccid,
        receiver_ccid = stats.rx_ccid,
        max_message_bytes = stats.max_message_size,
        "connection open"
    );
}

fn closed(endpoint: &Endpoint, id: ConnectionId, reason: CloseReason) {
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    let peer = peer(endpoint, id);
    tracing::info!(%peer, %reason, text = endpoint.reset_text(id), "connection over");
    if let Some(stats) = endpoint.stats(id) {
        tracing::debug!(
            %peer,
            srtt_ms = stats.srtt.map(|rtt| rtt.as_millis_f64()),
            cwnd_packets = stats.cwnd_packets,
            congestion_events = stats.congestion_events,
            timeouts = stats.timeouts,
            counters = ?stats.counters,
            "connection statistics"
        );
    }
}

/// The peer of a connection, as text.
fn peer(endpoint: &Endpoint, id: ConnectionId) -> String {
    let address = endpoint.tuple(id).map(|t| Address { udp: t.remote, port: t.remote_port });
    address.map_or_else(|| "unknown".to_owned(), |address| address.to_string())
}
