//! Reports what happens to a connection in addition to its messages.

use std::collections::VecDeque;

use udccp_proto::{DropCode, DropReason, EventKind, MessageFate};

/// Something that an application may want to know, and may well ignore: all but the fate of single
/// messages is in [`crate::ConnectionStats`] too, as a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// A message that was accepted will not be delivered.
    MessageDropped {
        /// Why.
        reason: DropReason,
        /// Its length in bytes.
        bytes: u32,
    },
    /// What became of a message with a token ([`crate::Outgoing::token`]). Each that was queued has
    /// exactly one such event, which is kept until it is read, however many there are.
    MessageFate {
        /// The token of the message.
        token: u64,
        /// What became of it.
        fate: MessageFate,
    },
    /// The peer received data, but its application did not have it as it should (Data Dropped, RFC
    /// 4340 section 11.7).
    PeerDropped {
        /// Why.
        code: DropCode,
        /// Messages.
        messages: u64,
    },
    /// The peer can hardly keep up (Slow Receiver, section 11.6): do not send more than now.
    PeerSlow,
    /// The largest message that fits in one packet is another now: the path was explored, or it
    /// changed.
    MaxMessageSize {
        /// In bytes.
        bytes: usize,
    },
    /// The peer's application reads no more (section 11.7.2): nothing more can be sent.
    PeerShutdownRead,
}

impl ConnectionEvent {
    /// What an event of the protocol means to the application, if anything.
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

/// Events that wait at most; of more, the oldest are forgotten, but no fate of a message. Dropped
/// messages go first: a full queue of them comes at once, behind the event that says why.
const MAX_EVENTS: usize = 64;

/// Events that nobody has read yet. Most connections have none.
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
