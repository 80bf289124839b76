//! Runs a randomised test with many seeds, and reports the seed that fails.

use std::future::Future;
use std::ops::Range;
use std::time::Duration;

/// A run that takes longer counts as hung.
const LONGEST: Duration = Duration::from_secs(300);
/// Runs at the same time.
const TOGETHER: usize = 20;

/// The seeds of a test: `usual` of them from 0, or `UDCCP_TEST_CASES` of them from
/// `UDCCP_TEST_SEED`.
///
/// # Panics
/// If one of the two variables is set and is not a number.
pub fn seeds(usual: u64) -> Range<u64> {
    let number = |name: &str| {
        let value = std::env::var(name).ok()?;
        Some(value.parse::<u64>().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
    };
    let first = number("UDCCP_TEST_SEED").unwrap_or(0);
    first..first + number("UDCCP_TEST_CASES").unwrap_or(usual)
}

/// Runs `case` with each seed on one thread, several at a time, until all have ended and no task is
/// left.
///
/// # Panics
/// If a run panics or hangs (the message names its seed), or leaves a task behind.
pub fn run_seeds<L: Future<Output = ()> + Send + 'static>(
    mut seeds: Range<u64>,
    case: impl Fn(u64) -> L,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let mut running = tokio::task::JoinSet::new();
        let mut failed = Vec::new();
        loop {
            while running.len() < TOGETHER
                && let Some(seed) = seeds.next()
            {
                let case = case(seed);
                running.spawn(async move {
                    tokio::time::timeout(LONGEST, case).await.map_err(|_| seed)
                });
            }
            match running.join_next().await {
                Some(Ok(Ok(()))) => {}
                Some(Ok(Err(seed))) => failed.push(format!("seed {seed} hangs")),
                Some(Err(e)) => failed.push(e.to_string()),
                None => break,
            }
        }
        tokio::time::timeout(LONGEST, no_task_is_left()).await.expect("no task is left behind");
        assert!(failed.is_empty(), "{failed:?}");
    });
}

async fn no_task_is_left() {
    while tokio::runtime::Handle::current().metrics().num_alive_tasks() > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "case 3")]
    fn panicking_run_fails_the_test() {
        run_seeds(0..5, |seed| async move { assert_ne!(seed, 3, "case 3") });
    }
}
