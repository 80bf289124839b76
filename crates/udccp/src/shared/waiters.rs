//! Tasks that wait for something, and what is known of a connection between calls.

use std::task::Waker;

use udccp_proto::{CloseReason, ListenerId};

use crate::event::Events;
use crate::readiness::Signal;

/// Tasks waiting for one thing. Mostly none or one.
#[derive(Debug, Default)]
pub(crate) enum Waiters {
    #[default]
    None,
    One(Waker),
    /// At least two.
    Several(Vec<Waker>),
}

impl Waiters {
    /// Adds a task, once. One that cannot be woken does not wait.
    pub(crate) fn add(&mut self, waker: &Waker) {
        match self {
            _ if waker.will_wake(Waker::noop()) => {}
            Self::None => *self = Self::One(waker.clone()),
            Self::One(one) if one.will_wake(waker) => {}
            Self::One(one) => *self = Self::Several(vec![one.clone(), waker.clone()]),
            Self::Several(all) if all.iter().any(|w| w.will_wake(waker)) => {}
            Self::Several(all) => all.push(waker.clone()),
        }
    }

    /// Whether no task waits.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    /// The tasks.
    #[cfg(test)]
    pub(crate) fn list(&self) -> Vec<Waker> {
        match self {
            Self::None => Vec::new(),
            Self::One(one) => vec![one.clone()],
            Self::Several(all) => all.clone(),
        }
    }

    /// Moves all tasks to the list of those to be woken.
    pub(crate) fn move_to(&mut self, list: &mut impl Extend<Waker>) {
        match std::mem::take(self) {
            Self::None => {}
            Self::One(one) => list.extend([one]),
            Self::Several(all) => list.extend(all),
        }
    }
}

/// A connection as the socket layer sees it.
#[derive(Debug, Default)]
pub(crate) struct Conn {
    /// What its application may want to know.
    pub(crate) events: Events,
    /// Waiting for a message.
    pub(crate) readers: Waiters,
    /// Tasks that wait for what they sent; made with the first of them.
    pub(crate) senders: Option<Box<Senders>>,
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

/// Tasks that wait for what they sent.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    /// Waiting for room in the send queue.
    pub(crate) writers: Waiters,
    /// Waiting for an empty send queue.
    pub(crate) flushers: Waiters,
    /// Waiting for everything sent to be accounted for.
    pub(crate) acknowledged: Waiters,
}

impl Senders {
    fn all(&mut self) -> [&mut Waiters; 3] {
        [&mut self.writers, &mut self.flushers, &mut self.acknowledged]
    }
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
    /// Room for tasks that wait for what they sent.
    pub(crate) fn senders(&mut self) -> &mut Senders {
        self.senders.get_or_insert_default()
    }

    /// Whether anybody waits.
    pub(crate) fn has_waiters(&self) -> bool {
        let senders = self.senders.as_deref();
        let waits = |s: &Senders| {
            [&s.writers, &s.flushers, &s.acknowledged].iter().any(|waiters| !waiters.is_empty())
        };
        !self.readers.is_empty() || !self.others.is_empty() || senders.is_some_and(waits)
    }

    /// There is room in the send queue.
    pub(crate) fn wake_writers(&mut self, list: &mut impl Extend<Waker>) {
        if let Some(senders) = &mut self.senders {
            senders.writers.move_to(list);
        }
    }

    /// Everybody has a reason to look again.
    pub(crate) fn wake_all(&mut self, list: &mut impl Extend<Waker>) {
        self.readers.move_to(list);
        for waiters in self.senders.as_deref_mut().into_iter().flat_map(Senders::all) {
            waiters.move_to(list);
        }
        self.others.move_to(list);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    struct Nobody;

    impl Wake for Nobody {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn each_task_is_woken_once_in_the_order_in_which_they_came() {
        let tasks = [(); 3].map(|()| Waker::from(Arc::new(Nobody)));
        let (mut waiters, mut woken) = (Waiters::default(), Vec::new());
        for n in [0, 0, 1, 0, 1, 2, 2] {
            waiters.add(&tasks[n]);
        }
        assert!(!waiters.is_empty());
        waiters.move_to(&mut woken);
        assert!(waiters.is_empty());
        assert_eq!(woken.len(), 3);
        assert!(woken.iter().zip(&tasks).all(|(one, other)| one.will_wake(other)));
    }

    /// What nobody waits for takes little room in each of many connections.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_connection_is_small_here_too() {
        assert_eq!((size_of::<Waiters>(), size_of::<Conn>()), (24, 88));
    }
}
