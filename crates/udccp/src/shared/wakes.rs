//! Collects the tasks to wake once the lock is free.

use std::task::Waker;

/// Tasks to wake. Usually none or one, which needs no allocation.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl Wakes {
    /// Number of tasks.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    /// The tasks, in order of arrival.
    pub(crate) fn tasks(self) -> impl Iterator<Item = Waker> {
        self.first.into_iter().chain(self.others)
    }

    /// Wakes them.
    pub(crate) fn wake(self) {
        // Usually there are none. Without a first there are no others.
        if self.first.is_some() {
            self.tasks().for_each(Waker::wake);
        }
    }
}

impl Extend<Waker> for Wakes {
    fn extend<I: IntoIterator<Item = Waker>>(&mut self, tasks: I) {
        let mut tasks = tasks.into_iter();
        if self.first.is_none() {
            self.first = tasks.next();
        }
        self.others.extend(tasks);
    }
}
