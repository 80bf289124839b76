//! Tasks that wait for something, and what is known of a connection between calls.

use std::task::Waker;

use udccp_proto::{CloseReason, ListenerId};

use crate::event::Events;
use crate::readiness::Signal;

/// Tasks waiting for one thing. Mostly none or one.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    first: Option<Waker>,
    more: Vec<Waker>,
}

impl Waiters {
    /// Adds a task, once.
    pub(crate) fn add(&mut self, waker: &Waker) {
        match &self.first {
            None => self.first = Some(waker.clone()),
            Some(w) if w.will_wake(waker) => {}
            Some(_) if self.more.iter().any(|w| w.will_wake(waker)) => {}
            Some(_) => self.more.push(waker.clone()),
        }
    }

    /// Whether no task waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none() && self.more.is_empty()
    }

    /// Moves all tasks to the list of those to be woken.
    pub(crate) fn move_to(&mut self, list: &mut Vec<Waker>) {
        list.extend(self.first.take());
        list.append(&mut self.more);
    }
}

/// A connection as the socket layer sees it.
#[derive(Debug, Default)]
pub(crate) struct Conn {
    /// What its application may want to know.
    pub(crate) events: Events,
    /// Waiting for a message.
    pub(crate) readers: Waiters,
    /// Waiting for room in the send queue.
    pub(crate) writers: Waiters,
    /// Waiting for an empty send queue.
    pub(crate) flushers: Waiters,
    /// Waiting for everything sent to be accounted for.
    pub(crate) acknowledged: Waiters,
    /// Waiting for the handshake or for the end.
    pub(crate) others: Waiters,
    pub(crate) connected: bool,
    pub(crate) ended: Option<CloseReason>,
    /// The application reads no more.
    pub(crate) read_closed: bool,
    /// Not accepted yet.
    pub(crate) queued_at: Option<ListenerId>,
    /// Its descriptor, if somebody asked for one.
    pub(crate) signal: Option<Box<Signal>>,
}

/// A listener as the socket layer sees it.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    /// Waiting for a connection.
    pub(crate) waiters: Waiters,
    /// Its descriptor, if somebody asked for one.
    pub(crate) signal: Option<Box<Signal>>,
}

impl Conn {
    /// Whether anybody waits.
    pub(crate) fn has_waiters(&self) -> bool {
        [&self.readers, &self.writers, &self.flushers, &self.acknowledged, &self.others]
            .iter()
            .any(|waiters| !waiters.is_empty())
    }

    /// Everybody has a reason to look again.
    pub(crate) fn wake_all(&mut self, list: &mut Vec<Waker>) {
        self.readers.move_to(list);
        self.writers.move_to(list);
        self.flushers.move_to(list);
        self.acknowledged.move_to(list);
        self.others.move_to(list);
    }
}
