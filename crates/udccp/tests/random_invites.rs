//! Random invitations (RFC 5596): two ends connect and invite in any order, over a path that loses,
//! duplicates and delays. One of them may have given up, or both may connect. Every call ends, and
//! if both ends stay, the connection opens.
//!
//! `UDCCP_TEST_CASES=1000 cargo test -p udccp --test random_invites` runs more cases, starting at
//! `UDCCP_TEST_SEED`.

mod common;

use std::time::Duration;

use common::{SERVICE, localhost};
use tokio::time::{sleep, timeout};
use udccp::{Address, Connection, Endpoint, Error, Options};
use udccp_base::{Rng, Seed};
use udccp_testkit::{Fate, Relay, Rule, by_chance, randomised};

const CASES: u64 = 20;
/// Longer than any handshake takes to give up, because a busy machine may be slow.
const PATIENCE: Duration = Duration::from_secs(60);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A Binding request (RFC 8489).
fn stun() -> Vec<u8> {
    [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12]].concat()
}

/// What one end does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Calls,
    Invites,
    /// The end does not exist.
    Missing,
}

/// An end, and what it knows of the other.
struct Place {
    endpoint: Endpoint,
    port: u16,
    peer: Address,
}

impl Place {
    /// Plays a role, with a late start. `wavers`: it cancels a first attempt, and a peer that
    /// connects before the second attempt is refused.
    async fn play(
        &self,
        role: Role,
        wavers: bool,
        rto: Duration,
        rng: &mut Rng,
    ) -> Option<Result<Connection, Error>> {
        if role == Role::Missing {
            return None;
        }
        let options = Options::default().initial_rto(rto).request_retries(4);
        let attempt = || async {
            match role {
                Role::Calls => {
                    let from = options.clone().local_port(self.port);
                    self.endpoint.connect(self.peer, SERVICE, &from).await
                }
                Role::Invites => {
                    self.endpoint.invite(self.port, self.peer, SERVICE, &options).await
                }
                Role::Missing => unreachable!("it does nothing"),
            }
        };
        sleep(Duration::from_micros(rng.below(300_000))).await;
        self.endpoint.send_stun(&stun(), self.peer.udp).unwrap();
        if wavers {
            let early = timeout(Duration::from_micros(rng.below(50_000)), attempt()).await;
            if let Ok(early) = early {
                return Some(early);
            }
            // The peer may know of the first attempt as long as its Reset is in flight, or if it is
            // lost.
            sleep(ms(rng.below(300))).await;
        }
        let limit = if role == Role::Calls { PATIENCE } else { Duration::from_secs(5) };
        match timeout(limit, attempt()).await {
            Ok(done) => Some(done),
            Err(_) => {
                assert_ne!(role, Role::Calls, "a handshake ends");
                None
            }
        }
    }
}

/// A path whose inviting end is behind a firewall: the caller's packets pass once a Listen packet
/// was sent (RFC 5596 section 1). `client_calls`: the client of the relay is the caller.
fn behind_firewall(client_calls: Option<bool>, mut rule: impl Rule) -> impl Rule {
    let mut is_open = client_calls.is_none();
    move |from_client, packet: &mut Vec<u8>| {
        let is_dccp = !udccp::is_stun(packet);
        let is_listen = is_dccp && (packet[8] >> 1) & 15 == 10;
        let from_caller = client_calls == Some(from_client);
        is_open |= is_listen && !from_caller;
        if is_dccp && from_caller && !is_open { Fate::Drop } else { rule(from_client, packet) }
    }
}

async fn run_case(seed: u64) {
    let mut rng = Seed(seed).stream("life");
    let [a, b] = [0, 1].map(|_| Endpoint::bind(localhost(false)).unwrap());
    let loss = [0.0, 0.0, 0.1, 0.3][rng.below(4) as usize];
    let roles = match rng.below(10) {
        0..=3 => (Role::Calls, Role::Invites),
        4..=6 => (Role::Invites, Role::Calls),
        7 => (Role::Calls, Role::Calls),
        8 => (Role::Invites, Role::Missing),
        _ => (Role::Calls, Role::Missing),
    };
    let wavers = [rng.chance(0.2), rng.chance(0.2)];
    let is_meeting = roles.0 != roles.1 && roles.1 != Role::Missing;
    let is_walled = is_meeting && Seed(seed).stream("wall").chance(0.6);
    let is_calm = loss == 0.0 && wavers == [false; 2];
    // With a firewall and no losses, the only second Request needed is the one that a Listen
    // causes.
    let rto = if is_walled && is_calm { PATIENCE } else { ms(100) };
    let weather = by_chance(seed, loss, 0.2, 0.2);
    let rule = behind_firewall(is_walled.then_some(roles.0 == Role::Calls), weather);
    let relay = Relay::start(b.local_addr(), rule).await;
    let (x, y) = (50_001, 5_001);
    let behind = relay.client_seen_at();
    let a = Place { endpoint: a, port: x, peer: Address { udp: relay.addr(), port: y } };
    let b = Place { endpoint: b, port: y, peer: Address { udp: behind, port: x } };
    // The relay learns the address of `a` from a first datagram, as a NAT does.
    a.endpoint.send_stun(&stun(), relay.addr()).unwrap();
    let (mut of_a, mut of_b) = (Seed(seed).stream("a"), Seed(seed).stream("b"));
    let (c, s) = tokio::join!(
        a.play(roles.0, wavers[0], rto, &mut of_a),
        b.play(roles.1, wavers[1], rto, &mut of_b)
    );
    let is_open = |end: &Option<_>| matches!(end, Some(Ok(_)));
    assert!(is_meeting || !is_open(&c) && !is_open(&s), "seed {seed}: {roles:?}");
    // A caller without a peer gets an error; an invitation waits indefinitely.
    for (role, end) in [(roles.0, &c), (roles.1, &s)] {
        let is_told = matches!(end, Some(Err(_)));
        assert!(is_meeting || is_told == (role == Role::Calls), "seed {seed}: {roles:?}");
    }
    if let (Some(Ok(c)), Some(Ok(s))) = (&c, &s) {
        for n in 0..50_u8 {
            c.send(vec![n; 10]).await.unwrap();
            s.send(vec![n; 10]).await.unwrap();
        }
        for end in [c, s] {
            let heard = timeout(PATIENCE, end.recv()).await.expect("something arrives");
            assert!(heard.unwrap().is_some(), "seed {seed}");
        }
    } else {
        assert!(!is_meeting || !is_calm, "seed {seed}: {roles:?}, {} {}", outcome(&c), outcome(&s));
    }
    drop((c, s));
    for end in [&a, &b] {
        let idle = timeout(PATIENCE, end.endpoint.wait_idle()).await;
        assert!(idle.is_ok(), "seed {seed}: {roles:?} {wavers:?} {:?}", end.endpoint.stats());
    }
}

/// The result of an attempt, as text.
fn outcome(end: &Option<Result<Connection, Error>>) -> String {
    end.as_ref().map_or("none".to_string(), |end| format!("{:?}", end.as_ref().map(|_| "open")))
}

#[test]
fn invitations_succeed_or_time_out() {
    randomised::run_seeds(randomised::seeds(CASES), run_case);
}
