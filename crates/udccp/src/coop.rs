//! Lets other tasks of the runtime run, the driver among them, where calls never have to wait.

use std::task::{Context, Poll, ready};

use tokio::task::coop::poll_proceed;

/// Messages of a batch that count as one call. A task is interrupted after 128 calls: 2,048
/// messages are about a millisecond.
const BATCH: usize = 16;

/// A call as one of those after which a task is interrupted, if it does not have to wait.
pub(crate) fn counted<T>(
    cx: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let budget = ready!(poll_proceed(cx));
    let result = poll(cx);
    if result.is_ready() {
        budget.made_progress();
    }
    result
}

/// Counts the messages of a batch beside the call.
pub(crate) fn count_batch(cx: &mut Context<'_>, messages: usize) {
    for _ in 0..messages / BATCH {
        match poll_proceed(cx) {
            Poll::Ready(budget) => budget.made_progress(),
            Poll::Pending => return,
        }
    }
}
