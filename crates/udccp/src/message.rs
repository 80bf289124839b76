//! Messages to send, and messages as they arrived.

use std::io::IoSlice;

use bytes::{Bytes, BytesMut};
use udccp_base::{Instant, Message, Payload};

/// A message as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Received {
    /// Its data.
    pub data: Bytes,
    /// Whether its Data Checksum shows that the data was damaged on the way. Such messages are
    /// delivered only with [`crate::Options::deliver_corrupt`].
    pub is_corrupt: bool,
}

impl Received {
    /// Copies the data, as much of it as fits.
    pub(crate) fn copy_into(self, buffer: &mut [u8]) -> ReceivedInto {
        let copied = self.data.len().min(buffer.len());
        buffer[..copied].copy_from_slice(&self.data[..copied]);
        ReceivedInto { copied, message_len: self.data.len(), is_corrupt: self.is_corrupt }
    }
}

/// A message that was copied into a buffer. What did not fit was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedInto {
    /// Bytes in the buffer.
    pub copied: usize,
    /// Length of the message in bytes, which may be more than fits (as with `MSG_TRUNC`). 0 means
    /// an empty message, not the end.
    pub message_len: usize,
    /// As in [`Received::is_corrupt`].
    pub is_corrupt: bool,
}

impl ReceivedInto {
    /// Whether the buffer was too short for the message (`MSG_TRUNC`).
    pub const fn is_truncated(&self) -> bool {
        self.copied < self.message_len
    }
}

/// A message to send: its data and, optionally, a lifetime, a priority and a token.
///
/// Anything that converts to [`Bytes`] is a message without a lifetime, of the lowest priority:
///
/// ```
/// use std::time::Duration;
/// use udccp::Outgoing;
///
/// let plain: Outgoing = "hello".into();
/// let frame = Outgoing::new(vec![0; 1000]).lifetime(Duration::from_millis(40)).priority(1);
/// assert_eq!((plain.len(), frame.len()), (5, 1000));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    pub(crate) payload: Bytes,
    lifetime: Option<Lifetime>,
    priority: u32,
    token: Option<u64>,
}

/// How long a message may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lifetime {
    /// So long from the call that sends it.
    From(std::time::Duration),
    /// Until then: the call has begun, and waits for room.
    Until(Instant),
}

impl Outgoing {
    /// A message with no lifetime, priority 0 (the lowest) and no token.
    pub fn new(payload: impl Into<Bytes>) -> Self {
        Self { payload: payload.into(), lifetime: None, priority: 0, token: None }
    }

    /// Limits how long the message may wait to be sent, counted from the call that sends it. If it
    /// has not left by then, it is dropped and counted in `stats().counters.drops.send_expired`.
    #[must_use]
    pub fn lifetime(mut self, lifetime: std::time::Duration) -> Self {
        self.lifetime = Some(Lifetime::From(lifetime));
        self
    }

    /// Messages of higher priority leave first; those of equal priority keep their order (default
    /// 0, the lowest).
    #[must_use]
    pub fn priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }

    /// Asks for a report of what happens to the message: one [`ConnectionEvent::MessageFate`] with
    /// this number follows once that is known (see [`MessageFate`]). Numbers may repeat. A message
    /// without a token has no such event and no cost.
    ///
    /// [`ConnectionEvent::MessageFate`]: crate::ConnectionEvent::MessageFate
    /// [`MessageFate`]: crate::MessageFate
    #[must_use]
    pub fn token(mut self, token: u64) -> Self {
        self.token = Some(token);
        self
    }

    /// The data.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// This message with other data and the same lifetime, priority and token, for layers that wrap
    /// or encrypt messages.
    #[must_use]
    pub fn with_payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.payload.len()
    }

    /// Whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    pub(crate) fn into_message(self, now: Instant) -> Message {
        Message {
            payload: Payload::Bytes(self.payload),
            deadline: self.lifetime.map(|lifetime| match lifetime {
                Lifetime::From(span) => now + span.into(),
                Lifetime::Until(deadline) => deadline,
            }),
            priority: self.priority,
            token: self.token,
        }
    }

    /// The message again, after a queue refused it. Its time goes on while the call waits.
    pub(crate) fn from_message(message: Message) -> Self {
        Self {
            payload: message.payload.to_bytes(),
            lifetime: message.deadline.map(Lifetime::Until),
            priority: message.priority,
            token: message.token,
        }
    }

    /// The message for another call, from which its time counts.
    pub(crate) fn for_another_call(mut self, now: Instant) -> Self {
        if let Some(Lifetime::Until(deadline)) = self.lifetime {
            self.lifetime = Some(Lifetime::From(deadline.saturating_since(now).to_std()));
        }
        self
    }
}

impl<T: Into<Bytes>> From<T> for Outgoing {
    fn from(payload: T) -> Self {
        Self::new(payload)
    }
}

pub(crate) fn gather(pieces: &[IoSlice<'_>]) -> Bytes {
    let mut whole = BytesMut::with_capacity(pieces.iter().map(|p| p.len()).sum());
    pieces.iter().for_each(|p| whole.extend_from_slice(p));
    whole.freeze()
}
