//! Events of connections other than messages.

use std::collections::VecDeque;

use udccp_proto::{DropCode, DropReason, EventKind, MessageFate};

/// Something that an application may want to know but can ignore. All but the fates of single
/// messages are also counted in [`crate::ConnectionStats`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// A message that was queued was dropped and will not be delivered.
    MessageDropped {
        /// Why.
        reason: DropReason,
        /// Its length in bytes.
        bytes: u32,
    },
    /// What happened to a message with a token ([`crate::Outgoing::token`]). There is exactly one
    /// such event for each message that was queued, and it is kept until it is read.
    MessageFate {
        /// The token of the message.
        token: u64,
        /// The fate of the message.
        fate: MessageFate,
    },
    /// The peer received data but did not deliver it to its application, or delivered it damaged
    /// (Data Dropped, RFC 4340 section 11.7).
    PeerDropped {
        /// Why.
        code: DropCode,
        /// How many messages.
        messages: u64,
    },
    /// The peer can hardly keep up: do not send faster than now (Slow Receiver, RFC 4340 section
    /// 11.6).
    PeerSlow,
    /// The size of the largest message that fits in one packet has changed, because the path was
    /// probed or has changed.
    MaxMessageSize {
        /// The new size in bytes.
        bytes: usize,
    },
    /// The peer's application has stopped reading (RFC 4340 section 11.7.2). Nothing more can be
    /// sent.
    PeerShutdownRead,
}

impl ConnectionEvent {
    /// The event that the application sees, if any.
    pub(crate) const fn of(kind: EventKind) -> Option<Self> {
        Some(match kind {
            EventKind::MessageDropped { reason, bytes } => Self::MessageDropped { reason, bytes },
            EventKind::MessageFate { token, fate } => Self::MessageFate { token, fate },
            EventKind::PeerDropped { code, packets } => {
                Self::PeerDropped { code, messages: packets }
            }
            EventKind::PeerSlow => Self::PeerSlow,
            EventKind::MaxMessageSize { bytes } => Self::MaxMessageSize { bytes },
            EventKind::PeerShutdownRead => Self::PeerShutdownRead,
            _ => return None,
        })
    }
}

/// Most unread events. If there are more, the oldest are discarded, but never the fate of a
/// message. Events of dropped messages are discarded first, because a whole queue of them can come
/// at once, after the event with the reason.
const MAX_EVENTS: usize = 64;

/// Unread events. Most connections have none.
#[derive(Debug, Default)]
pub(crate) struct Events(Option<Box<Unread>>);

#[derive(Debug, Default)]
struct Unread {
    fates: VecDeque<(u64, MessageFate)>,
    others: VecDeque<ConnectionEvent>,
}

impl Events {
    pub(crate) fn push(&mut self, event: ConnectionEvent) {
        let unread = self.0.get_or_insert_default();
        if let ConnectionEvent::MessageFate { token, fate } = event {
            unread.fates.push_back((token, fate));
            return;
        }
        if unread.others.len() == MAX_EVENTS {
            let is_dropped = |e: &_| matches!(e, ConnectionEvent::MessageDropped { .. });
            let forgotten = unread.others.iter().position(is_dropped).unwrap_or(0);
            unread.others.remove(forgotten);
        }
        unread.others.push_back(event);
    }

    pub(crate) fn pop_front(&mut self) -> Option<ConnectionEvent> {
        let unread = self.0.as_mut()?;
        unread.others.pop_front().or_else(|| {
            let (token, fate) = unread.fates.pop_front()?;
            Some(ConnectionEvent::MessageFate { token, fate })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_dropped_messages_do_not_hide_why_they_were_dropped() {
        let mut events = Events::default();
        let why =
            [ConnectionEvent::MaxMessageSize { bytes: 500 }, ConnectionEvent::PeerShutdownRead];
        why.into_iter().for_each(|event| events.push(event));
        for bytes in 0..100 {
            let reason = crate::DropReason::PeerShutdownRead;
            events.push(ConnectionEvent::MessageDropped { reason, bytes });
        }
        let kept: Vec<_> = std::iter::from_fn(|| events.pop_front()).collect();
        assert_eq!((&kept[..2], kept.len()), (&why[..], MAX_EVENTS));
        let last = kept[MAX_EVENTS - 1];
        assert!(matches!(last, ConnectionEvent::MessageDropped { bytes: 99, .. }), "{last:?}");
    }
}
