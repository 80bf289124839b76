//! Runs in step with a clock: the same network, and packets from outside.

mod toy;

use std::sync::atomic::{AtomicBool, Ordering};

use toy::{ToyReceiver, ToySender};
use udccp_base::{DataRate, Duration, Instant, Seed};
use udccp_sim::{
    Bulk, Chain, ConstantRate, HopConfig, Pace, PairConfig, QueueLimit, RunConfig, SimError, Turn,
};

fn chain() -> Chain {
    let rtt = Duration::from_millis(10);
    let hop = HopConfig::symmetric(DataRate::from_mbps(8), rtt, QueueLimit::Packets(20));
    let mut chain = Chain::new(vec![hop; 2]);
    let at = chain.next_addresses();
    let (sender, receiver) = (ToySender::new(at, 12), ToyReceiver::new(at));
    chain.add_pair(PairConfig::new("bulk", sender, receiver, Box::new(Bulk::new())));
    let at = chain.next_addresses();
    let source = Box::new(ConstantRate::new(DataRate::from_mbps(1), 968));
    let (sender, receiver) = (ToySender::udp(at), ToyReceiver::udp(at));
    chain.add_pair(PairConfig::new("cbr", sender, receiver, source));
    chain
}

fn config() -> RunConfig<'static> {
    RunConfig::new(Duration::from_secs(5), Seed(1))
}

/// A clock that is never late, and records its calls.
#[derive(Default)]
struct Exact {
    asked: Vec<Instant>,
    stop_at: Option<Instant>,
    /// Reports input of this host at every turn.
    nudge: Option<usize>,
}

impl Pace for Exact {
    fn wait(&mut self, due: Instant) -> Turn {
        if self.stop_at.is_some_and(|stop| due >= stop) {
            return Turn::Stop;
        }
        let is_new = self.asked.last() != Some(&due);
        self.asked.push(due);
        match self.nudge {
            // A time in the past and one in the future are both adjusted.
            Some(host) if is_new && due.as_nanos().is_multiple_of(2) => {
                Turn::Input { host, at: Instant::ZERO }
            }
            Some(host) if is_new => Turn::Input { host, at: Instant::MAX },
            _ => Turn::Due,
        }
    }
}

#[test]
fn with_a_clock_that_is_never_late_everything_happens_as_without_one() {
    let free = chain().run(config()).unwrap();
    let mut clock = Exact::default();
    let paced = chain().run_paced(config(), &mut clock).unwrap();
    assert_eq!(free, paced);
    assert!(clock.asked.is_sorted(), "time goes on");
    // The run waits for every event and every sample: one per second, and the end.
    assert!(clock.asked.len() as u64 >= free.cost.events);
    assert_eq!(clock.asked.last(), Some(&(Instant::ZERO + Duration::from_secs(5))));
}

#[test]
fn polling_a_host_more_often_changes_nothing() {
    let free = chain().run(config()).unwrap();
    let mut clock = Exact { nudge: Some(0), ..Exact::default() };
    let paced = chain().run_paced(config(), &mut clock).unwrap();
    assert_eq!(free.flows, paced.flows);
    assert!(paced.cost.events > free.cost.events);
}

#[test]
fn the_owner_of_the_clock_ends_a_run() {
    let stop_at = Instant::ZERO + Duration::from_secs(2);
    let mut clock = Exact { stop_at: Some(stop_at), ..Exact::default() };
    let error = chain().run_paced(config(), &mut clock).unwrap_err();
    assert!(matches!(error, SimError::Stopped { at } if at < stop_at), "{error}");
}

#[test]
fn a_flag_ends_a_run_and_one_that_is_not_set_changes_nothing() {
    let flag = AtomicBool::new(false);
    let free = chain().run(config()).unwrap();
    let watched = chain().run(RunConfig { stop: Some(&flag), ..config() }).unwrap();
    assert_eq!(free, watched);
    flag.store(true, Ordering::Relaxed);
    let error = chain().run(RunConfig { stop: Some(&flag), ..config() }).unwrap_err();
    assert!(matches!(error, SimError::Stopped { .. }), "{error}");
}
