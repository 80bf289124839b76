//! Lets other tasks of the runtime run, including the driver, when calls never have to wait.

use std::task::{Context, Poll, ready};

use tokio::task::coop::poll_proceed;

/// Messages of a batch that count as one call. A task yields after 128 calls: 2,048 messages take
/// about a millisecond.
const BATCH: usize = 16;

/// Counts a call against the task's budget, and makes the task yield once that is used up.
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

/// Counts the messages of a batch in addition to the call.
pub(crate) fn count_batch(cx: &mut Context<'_>, messages: usize) {
    for _ in 0..messages / BATCH {
        match poll_proceed(cx) {
            Poll::Ready(budget) => budget.made_progress(),
            Poll::Pending => return,
        }
    }
}
