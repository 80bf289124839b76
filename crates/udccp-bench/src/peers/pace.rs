//! Repeats work: several tasks at once, or messages at a fixed rate.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

/// Repeats all works concurrently until `end`. Returns the total number of repetitions.
pub(crate) async fn at_once<W, F>(works: impl IntoIterator<Item = W>, end: Instant) -> Result<u64>
where
    W: Fn() -> F + 'static,
    F: Future<Output = Result<()>> + 'static,
{
    let local = tokio::task::LocalSet::new();
    let tasks = async move {
        let mut tasks = JoinSet::new();
        for work in works {
            tasks.spawn_local(async move {
                let mut done = 0_u64;
                while Instant::now() < end {
                    work().await?;
                    done += 1;
                }
                Ok::<_, anyhow::Error>(done)
            });
        }
        let mut done = 0;
        while let Some(one) = tasks.join_next().await {
            done += one??;
        }
        Ok(done)
    };
    local.run_until(tasks).await
}

/// Sends a message on each of `n` connections a hundred times per second: on a tenth of the
/// connections each millisecond.
pub(crate) async fn by_the_clock(n: usize, seconds: f64, mut send: impl FnMut(usize)) {
    let mut tick = tokio::time::interval(Duration::from_millis(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for now in 0..(seconds * 1000.0) as usize {
        tick.tick().await;
        for connection in (now % 10..n).step_by(10) {
            send(connection);
        }
    }
}

/// Performs round trips until `end`. Returns how long each took.
pub(crate) async fn round_trips<F>(end: Instant, ask: impl Fn() -> F) -> Result<Vec<Duration>>
where
    F: Future<Output = Result<()>>,
{
    let mut times = Vec::with_capacity(1 << 20);
    while Instant::now() < end {
        let began = Instant::now();
        ask().await?;
        times.push(began.elapsed());
    }
    Ok(times)
}

/// The same with blocking calls.
pub(crate) fn round_trips_blocking(
    end: Instant,
    mut ask: impl FnMut() -> Result<()>,
) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(1 << 20);
    while Instant::now() < end {
        let began = Instant::now();
        ask()?;
        times.push(began.elapsed());
    }
    Ok(times)
}
