//! Random invitations (RFC 5596): the two call and invite in any order, over a path that loses,
//! doubles and delays; one of them may have given up, or both call. Every call ends, and where both
//! stay the connection opens.
//!
//! `UDCCP_LIVES=1000 cargo test -p udccp --test invited_lives` lives more lives, from
//! `UDCCP_TEST_SEED` on.

mod common;

use std::time::Duration;

use common::{SERVICE, localhost};
use tokio::time::{sleep, timeout};
use udccp::{Address, Connection, Endpoint, Error, Options};
use udccp_base::{Rng, Seed};
use udccp_testkit::{Fate, Relay, Rule, by_chance, lives};

const LIVES: u64 = 20;
/// A handshake gives up long before, and a busy machine may need long.
const PATIENCE: Duration = Duration::from_secs(60);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A Binding request (RFC 8489).
fn stun() -> Vec<u8> {
    [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12]].concat()
}

/// What one of the two does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Calls,
    Invites,
    /// It does not exist.
    Missing,
}

/// An end, and what it knows of the other.
struct Place {
    endpoint: Endpoint,
    port: u16,
    peer: Address,
}

impl Place {
    /// Plays a role, with a late start. `wavers`: it gives up a first attempt, and who calls it
    /// before the second one is refused.
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
            // The peer may know of the attempt for as long as its Reset is under way, or lost.
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

/// The path of a meeting whose inviting end is behind a wall: what the caller says passes once a
/// Listen has left (RFC 5596 section 1). `client_calls`: the client of the relay is the caller.
fn behind_wall(client_calls: Option<bool>, mut rule: impl Rule) -> impl Rule {
    let mut is_open = client_calls.is_none();
    move |from_client, packet: &mut Vec<u8>| {
        let is_dccp = !udccp::is_stun(packet);
        let is_listen = is_dccp && (packet[8] >> 1) & 15 == 10;
        let from_caller = client_calls == Some(from_client);
        is_open |= is_listen && !from_caller;
        if is_dccp && from_caller && !is_open { Fate::Drop } else { rule(from_client, packet) }
    }
}

async fn life(seed: u64) {
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
    // Behind a wall on a calm path no second Request is necessary but the one that a Listen makes.
    let rto = if is_walled && is_calm { PATIENCE } else { ms(100) };
    let weather = by_chance(seed, loss, 0.2, 0.2);
    let rule = behind_wall(is_walled.then_some(roles.0 == Role::Calls), weather);
    let relay = Relay::start(b.local_addr(), rule).await;
    let (x, y) = (50_001, 5_001);
    let behind = relay.client_seen_at();
    let a = Place { endpoint: a, port: x, peer: Address { udp: relay.addr(), port: y } };
    let b = Place { endpoint: b, port: y, peer: Address { udp: behind, port: x } };
    // The relay learns where `a` is from a first datagram, as a NAT does.
    a.endpoint.send_stun(&stun(), relay.addr()).unwrap();
    let (mut of_a, mut of_b) = (Seed(seed).stream("a"), Seed(seed).stream("b"));
    let (c, s) = tokio::join!(
        a.play(roles.0, wavers[0], rto, &mut of_a),
        b.play(roles.1, wavers[1], rto, &mut of_b)
    );
    let is_open = |end: &Option<_>| matches!(end, Some(Ok(_)));
    assert!(is_meeting || !is_open(&c) && !is_open(&s), "seed {seed}: {roles:?}");
    // Who calls and is not met is told; an invitation waits for as long as it likes.
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

/// How an attempt ended, in a word.
fn outcome(end: &Option<Result<Connection, Error>>) -> String {
    end.as_ref().map_or("none".to_string(), |end| format!("{:?}", end.as_ref().map(|_| "open")))
}

#[test]
fn who_stays_is_met_and_who_is_alone_is_told() {
    lives::live_all(lives::seeds(LIVES), life);
}
