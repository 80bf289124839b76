//! Tasks that wait, and the state of connections between calls.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Waker};

use udccp_proto::{CloseReason, ConnectionId, ListenerId};

use super::caller_driver::CallerDriver;
use crate::event::Events;
use crate::readiness::Signal;

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum WaitFor {
    /// A message.
    Message = 1,
    /// Room in the send queue.
    Room = 2,
    /// An empty send queue.
    Flushed = 4,
    /// Everything sent to be accounted for.
    Acknowledged = 8,
    /// The handshake, the end or an event; or anything at a place that is not a connection.
    Other = 16,
}

/// Where tasks wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At a connection, for one thing or another.
    Connection(ConnectionId),
    /// At a listener, for a new connection.
    Listener(ListenerId),
    /// At the endpoint, for a STUN message.
    Stun,
    /// At the endpoint, for the end of the last connection.
    Idle,
}

/// A waiting task, with the number of its call if the call removes itself when it is cancelled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter<'a> {
    pub(crate) waker: &'a Waker,
    /// The number of the call, 0 before it has one.
    pub(crate) call: Option<&'a AtomicU32>,
    /// The thread, if it may drive while it waits.
    pub(crate) caller_driver: Option<&'a CallerDriver<'a>>,
}

impl Waiter<'_> {
    /// The number of the call, if it has one.
    pub(super) fn number(self) -> Option<NonZeroU32> {
        self.call.and_then(|call| NonZeroU32::new(call.load(Ordering::Relaxed)))
    }
}

impl<'a> From<&'a mut Context<'_>> for Waiter<'a> {
    fn from(cx: &'a mut Context<'_>) -> Self {
        Self { waker: cx.waker(), call: None, caller_driver: None }
    }
}

/// A task, a bit for each thing it waits for, and the number of the call that waits.
#[derive(Debug)]
pub(crate) struct Task(Waker, u8, Option<NonZeroU32>);

impl Task {
    /// Whether this is the entry of this waiter.
    fn is_of(&self, waiter: Waiter<'_>) -> bool {
        is_same((&self.0, self.2), waiter)
    }
}

fn is_same(of: (&Waker, Option<NonZeroU32>), waiter: Waiter<'_>) -> bool {
    of.1 == waiter.number() && (of.1.is_some() || of.0.will_wake(waiter.waker))
}

/// Tasks that wait for something of a connection or of another object; usually none or one.
#[derive(Debug, Default)]
pub(crate) enum Waiting {
    #[default]
    None,
    One(Waker, u8, Option<NonZeroU32>),
    /// At least two, in order of arrival.
    #[expect(clippy::box_collection, reason = "few connections have these, and there are many")]
    Several(Box<Vec<Task>>),
}

impl Waiting {
    /// Adds a task, once for each thing and call. A no-op waker is not added.
    pub(crate) fn add(&mut self, what: WaitFor, waiter: Waiter<'_>) {
        if waiter.waker.will_wake(Waker::noop()) {
            return;
        }
        let (bit, call) = (what as u8, waiter.number());
        match self {
            Self::None => *self = Self::One(waiter.waker.clone(), bit, call),
            Self::One(one, bits, of) if is_same((one, *of), waiter) => {
                one.clone_from(waiter.waker);
                *bits |= bit;
            }
            Self::One(..) => {
                let Self::One(one, bits, of) = std::mem::take(self) else { return };
                let more = Task(waiter.waker.clone(), bit, call);
                *self = Self::Several(Box::new(vec![Task(one, bits, of), more]));
            }
            Self::Several(all) => match all.iter_mut().find(|task| task.is_of(waiter)) {
                Some(task) => {
                    task.0.clone_from(waiter.waker);
                    task.1 |= bit;
                }
                None => all.push(Task(waiter.waker.clone(), bit, call)),
            },
        }
    }

    /// Removes this call. Returns its task, to be dropped without the lock.
    pub(crate) fn remove(&mut self, call: NonZeroU32) -> Option<Waker> {
        match self {
            Self::One(.., of) if *of == Some(call) => match std::mem::take(self) {
                Self::One(one, ..) => Some(one),
                _ => None,
            },
            Self::Several(all) => {
                let at = all.iter().position(|task| task.2 == Some(call))?;
                let task = all.remove(at);
                self.tidy();
                Some(task.0)
            }
            Self::None | Self::One(..) => None,
        }
    }

    /// Removes this task, except for calls that remove themselves. Returns its waker, to be dropped
    /// without the lock.
    pub(crate) fn forget(&mut self, task: &Waker) -> Option<Waker> {
        match self {
            Self::One(one, _, None) if one.will_wake(task) => match std::mem::take(self) {
                Self::One(one, ..) => Some(one),
                _ => None,
            },
            Self::Several(all) => {
                let is_it = |of: &Task| of.2.is_none() && of.0.will_wake(task);
                let at = all.iter().position(is_it)?;
                let task = all.remove(at);
                self.tidy();
                Some(task.0)
            }
            Self::None | Self::One(..) => None,
        }
    }

    /// Whether no task waits.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Moves the tasks that wait for this to the list of those to be woken.
    pub(crate) fn wake(&mut self, what: WaitFor, list: &mut impl Extend<Waker>) {
        let bit = what as u8;
        match self {
            Self::One(_, bits, _) if *bits == bit => self.wake_all(list),
            Self::One(one, bits, _) if *bits & bit != 0 => {
                *bits &= !bit;
                list.extend([one.clone()]);
            }
            Self::Several(all) => {
                list.extend(all.iter().filter(|task| task.1 & bit != 0).map(|t| t.0.clone()));
                all.retain_mut(|task| {
                    task.1 &= !bit;
                    task.1 != 0
                });
                self.tidy();
            }
            Self::None | Self::One(..) => {}
        }
    }

    /// Uses the smaller form if at most one of several is left.
    fn tidy(&mut self) {
        let Self::Several(all) = self else { return };
        if all.len() < 2 {
            *self = all.pop().map_or(Self::None, |Task(one, bits, of)| Self::One(one, bits, of));
        }
    }

    /// Moves all tasks to the list of those to be woken.
    pub(crate) fn wake_all(&mut self, list: &mut impl Extend<Waker>) {
        match std::mem::take(self) {
            Self::None => {}
            Self::One(one, ..) => list.extend([one]),
            Self::Several(all) => list.extend(all.into_iter().map(|task| task.0)),
        }
    }

    /// The tasks that wait for this.
    #[cfg(test)]
    pub(crate) fn list(&self, what: WaitFor) -> Vec<Waker> {
        let waits = |bits: u8| bits & what as u8 != 0;
        match self {
            Self::One(one, bits, _) if waits(*bits) => vec![one.clone()],
            Self::Several(all) => {
                all.iter().filter(|task| waits(task.1)).map(|task| task.0.clone()).collect()
            }
            Self::None | Self::One(..) => Vec::new(),
        }
    }
}

/// The socket layer's state of a connection.
#[derive(Debug, Default)]
pub(crate) struct Conn {
    /// Events for its application.
    pub(crate) events: Events,
    pub(crate) waiting: Waiting,
    pub(crate) connected: bool,
    pub(crate) ended: Option<CloseReason>,
    /// Whether the application has stopped reading.
    pub(crate) read_closed: bool,
    /// The listener that has not accepted it yet.
    pub(crate) queued_at: Option<ListenerId>,
    /// Its descriptor, if it has one.
    pub(crate) signal: Option<Box<Signal>>,
}

/// The socket layer's state of a listener.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    /// Tasks that wait for a connection.
    pub(crate) waiting: Waiting,
    /// Its descriptor, if it has one.
    pub(crate) signal: Option<Box<Signal>>,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    struct NoWaker;

    impl Wake for NoWaker {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn each_task_is_woken_once_in_the_order_in_which_they_came() {
        let tasks = [(); 3].map(|()| Waker::from(Arc::new(NoWaker)));
        let (mut waiting, mut woken) = (Waiting::default(), Vec::new());
        for n in [0, 0, 1, 0, 1, 2, 2] {
            waiting
                .add(WaitFor::Other, Waiter { waker: &tasks[n], call: None, caller_driver: None });
        }
        assert!(!waiting.is_empty());
        waiting.wake_all(&mut woken);
        assert!(waiting.is_empty());
        assert_eq!(woken.len(), 3);
        assert!(woken.iter().zip(&tasks).all(|(one, other)| one.will_wake(other)));
    }

    #[test]
    fn forgotten_task_does_not_affect_other_waiters() {
        let tasks = [(); 3].map(|()| Waker::from(Arc::new(NoWaker)));
        let call = AtomicU32::new(1);
        let of = |n: usize| Waiter { waker: &tasks[n], call: None, caller_driver: None };
        let mut waiting = Waiting::default();
        assert!(waiting.forget(&tasks[0]).is_none());
        waiting.add(WaitFor::Message, of(0));
        assert!(waiting.forget(&tasks[1]).is_none() && waiting.forget(&tasks[0]).is_some());
        assert!(waiting.is_empty());
        for n in [0, 1, 2] {
            waiting.add(WaitFor::Message, of(n));
            waiting.add(WaitFor::Room, of(n));
        }
        waiting.add(
            WaitFor::Message,
            Waiter { waker: &tasks[1], call: Some(&call), caller_driver: None },
        );
        assert!(waiting.forget(&tasks[1]).is_some() && waiting.forget(&tasks[1]).is_none());
        assert_eq!(waiting.list(WaitFor::Room).len(), 2);
        assert_eq!(waiting.list(WaitFor::Message).len(), 3, "the call waits on");
    }

    #[test]
    fn a_task_that_waits_for_two_things_is_woken_by_each() {
        let tasks = [(); 3].map(|()| Waker::from(Arc::new(NoWaker)));
        let mut waiting = Waiting::default();
        let names = |woken: Vec<Waker>| -> Vec<usize> {
            let name = |w: &Waker| tasks.iter().position(|task| task.will_wake(w)).unwrap();
            woken.iter().map(name).collect()
        };
        let wake = |waiting: &mut Waiting, what| {
            let mut woken = Vec::new();
            waiting.wake(what, &mut woken);
            names(woken)
        };
        let of = |waker| Waiter { waker, call: None, caller_driver: None };
        waiting.add(WaitFor::Message, of(Waker::noop()));
        assert!(waiting.is_empty());
        waiting.add(WaitFor::Message, of(&tasks[0]));
        waiting.add(WaitFor::Room, of(&tasks[0]));
        assert_eq!(wake(&mut waiting, WaitFor::Room), [0]);
        assert_eq!(wake(&mut waiting, WaitFor::Room), []);
        for (what, n) in
            [(WaitFor::Other, 1), (WaitFor::Message, 1), (WaitFor::Room, 2), (WaitFor::Message, 0)]
        {
            waiting.add(what, of(&tasks[n]));
        }
        assert_eq!(names(waiting.list(WaitFor::Message)), [0, 1]);
        assert_eq!(wake(&mut waiting, WaitFor::Message), [0, 1]);
        assert_eq!(wake(&mut waiting, WaitFor::Room), [2]);
        assert!(matches!(waiting, Waiting::One(..)));
        waiting.add(WaitFor::Acknowledged, of(&tasks[2]));
        let mut woken = Vec::new();
        waiting.wake_all(&mut woken);
        assert_eq!(names(woken), [1, 2]);
        assert!(waiting.is_empty());
    }

    #[test]
    fn cancelled_call_does_not_affect_other_calls_of_its_task() {
        let waker = Waker::from(Arc::new(NoWaker));
        let calls = [0, 1, 2].map(AtomicU32::new);
        let number = |n: usize| NonZeroU32::new(n as u32).unwrap();
        for gone in 1..3 {
            let mut waiting = Waiting::default();
            for call in calls.iter().chain(&calls) {
                waiting.add(
                    WaitFor::Message,
                    Waiter { waker: &waker, call: Some(call), caller_driver: None },
                );
            }
            assert_eq!(waiting.list(WaitFor::Message).len(), 3);
            assert!(waiting.remove(number(gone)).is_some());
            assert_eq!(waiting.list(WaitFor::Message).len(), 2);
            assert!(waiting.remove(number(3 - gone)).is_some());
            assert!(matches!(waiting, Waiting::One(..)));
        }
    }

    /// Many connections have nothing waiting on them, so their state should be small.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn the_waiters_of_a_connection_are_small() {
        assert_eq!((size_of::<Waiting>(), size_of::<Conn>()), (24, 56));
    }
}
