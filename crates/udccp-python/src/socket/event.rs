//! Events of a connection other than messages, for Python.

use std::os::fd::AsRawFd;
use std::task::{Context, Poll};

use pyo3::prelude::*;
use udccp::{ConnectionEvent, DropCode, DropReason, MessageFate, blocking};

use super::wait::{WakeFd, would_block};
use crate::border;

/// An event in the form that `udccp.events` reads: its kind, a number, and one or two words.
pub(super) type Event = (&'static str, u64, &'static str, &'static str);

const fn reason_words(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Expired => "expired",
        DropReason::Displaced => "displaced",
        DropReason::ConnectionEnded => "connection-ended",
        DropReason::PeerShutdownRead => "peer-shutdown-read",
        DropReason::TooLarge => "too-large",
        _ => "other",
    }
}

const fn code_words(code: DropCode) -> &'static str {
    match code {
        DropCode::ProtocolConstraints => "protocol-constraints",
        DropCode::ApplicationNotListening => "application-not-listening",
        DropCode::ReceiveBuffer => "receive-buffer",
        DropCode::Corrupt => "corrupt",
        DropCode::DeliveredCorrupt => "delivered-corrupt",
        DropCode::Reserved(_) => "reserved",
    }
}

const fn fate_words(fate: MessageFate) -> (&'static str, &'static str) {
    match fate {
        MessageFate::Acknowledged => ("acknowledged", ""),
        MessageFate::PeerDropped(code) => ("peer-dropped", code_words(code)),
        MessageFate::Lost => ("lost", ""),
        MessageFate::Dropped(reason) => ("dropped", reason_words(reason)),
        _ => ("unknown", ""),
    }
}

/// Converts an event, if Python has a name for it.
const fn parts(event: ConnectionEvent) -> Option<Event> {
    Some(match event {
        ConnectionEvent::MessageFate { token, fate } => {
            let (fate, why) = fate_words(fate);
            ("message-fate", token, fate, why)
        }
        ConnectionEvent::MessageDropped { reason, bytes } => {
            ("message-dropped", bytes as u64, reason_words(reason), "")
        }
        ConnectionEvent::PeerDropped { code, messages } => {
            ("peer-dropped", messages, code_words(code), "")
        }
        ConnectionEvent::PeerSlow => ("peer-slow", 0, "", ""),
        ConnectionEvent::MaxMessageSize { bytes } => ("max-message-size", bytes as u64, "", ""),
        ConnectionEvent::PeerShutdownRead => ("peer-shutdown-read", 0, "", ""),
        _ => return None,
    })
}

/// The next event; `None` after the last event of a connection that has ended.
pub(super) fn poll_event(
    connection: &blocking::Connection,
    cx: &mut Context<'_>,
) -> Poll<Option<Event>> {
    loop {
        let Some(event) = std::task::ready!(connection.poll_event(cx)) else {
            return Poll::Ready(None);
        };
        if let Some(known) = parts(event) {
            return Poll::Ready(Some(known));
        }
    }
}

/// The events of a connection, with a descriptor that is readable when there may be one.
#[pyclass(frozen, module = "udccp._native")]
pub(super) struct Events {
    connection: blocking::Connection,
    wake_fd: WakeFd,
}

impl Events {
    pub(super) fn of(connection: &blocking::Connection) -> PyResult<Self> {
        Ok(Self { connection: connection.clone(), wake_fd: WakeFd::new()? })
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.wake_fd.leave(&self.connection);
    }
}

#[pymethods]
impl Events {
    /// The next event; raises `BlockingIOError` if there is none now; `None` at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Event>> {
        border::guard(py, || {
            self.wake_fd.clear();
            match poll_event(&self.connection, &mut self.wake_fd.task()) {
                Poll::Ready(event) => Ok(event),
                Poll::Pending => Err(would_block()),
            }
        })
    }

    fn fileno(&self) -> i32 {
        self.wake_fd.as_raw_fd()
    }
}
