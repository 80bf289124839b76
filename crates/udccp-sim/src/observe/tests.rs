//! The checker detects violations.

use std::sync::Arc;

use udccp_base::{Ecn, Seed};
use udccp_link::{Backlog, Drops, LinkStats, QueueLimit};

use super::*;
use crate::network::{LinkSpec, Node};

fn network() -> Network {
    let link = |from, to| LinkSpec { from, to, config: Arc::default() };
    let (host, router) = (Node::Host(0), Node::Router(0));
    let links = vec![link(host, router), link(router, host)];
    Network { hosts: 2, routers: 1, links }
}

fn link_name(link: usize) -> String {
    ["up", "down"][link].to_owned()
}

fn observer() -> Box<Observer> {
    Observer::new(&network(), &link_name, &[Some("flow".to_owned())], None, true).unwrap().unwrap()
}

fn handle(slot: u32) -> PacketHandle {
    PacketHandle::new(slot, 0, 0, 28, Ecn::NotEct)
}

fn meta(uid: u32) -> Meta {
    Meta { sent: Instant::ZERO, uid, path: 0, has_data: true, ..Meta::default() }
}

fn datagram(first_byte: u8) -> Datagram {
    Datagram {
        src: ([10, 1, 0, 1], 0).into(),
        dst: ([10, 2, 0, 1], 0).into(),
        protocol: 253,
        ecn: Ecn::NotEct,
        header: vec![first_byte; 8].into(),
        payload: Payload::EMPTY,
    }
}

/// A link that reports a given backlog, limit and order.
#[derive(Debug)]
struct FixedLink(Backlog, QueueLimit, bool);

impl Link<PacketHandle> for FixedLink {
    fn handle_packet(&mut self, _: Instant, _: PacketHandle, _: &mut Drops<PacketHandle>) {}

    fn poll_departure(&mut self, _: Instant, _: &mut Drops<PacketHandle>) -> Option<PacketHandle> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn packets_inside(&self) -> usize {
        0
    }

    fn backlog(&mut self, _: Instant) -> Backlog {
        self.0
    }

    fn limit(&self) -> QueueLimit {
        self.1
    }

    fn keeps_order(&self) -> bool {
        self.2
    }

    fn stats(&self, _: Instant) -> LinkStats {
        LinkStats::default()
    }
}

fn ordered() -> FixedLink {
    FixedLink(Backlog::default(), QueueLimit::Unlimited, true)
}

fn complaint(observer: &mut Observer) -> String {
    observer.take_failure().map_or_else(|e| e.to_string(), |()| "nothing".to_owned())
}

#[test]
fn a_packet_that_overtakes_is_an_error_where_order_is_kept() {
    for (keeps_order, expected) in [(true, "up delivers out of turn packet 2"), (false, "nothing")]
    {
        let mut observer = observer();
        let mut link = FixedLink(Backlog::default(), QueueLimit::Unlimited, keeps_order);
        for uid in [1, 2] {
            observer.entered(Instant::ZERO, 0, &mut link, uid, 1);
        }
        observer.departed(Instant::ZERO, 0, handle(0), (&datagram(1), meta(2)));
        assert!(complaint(&mut observer).contains(expected));
    }
}

#[test]
fn a_packet_that_was_dropped_leaves_no_gap_in_the_order() {
    let mut observer = observer();
    for uid in [1, 2, 3] {
        observer.entered(Instant::ZERO, 0, &mut ordered(), uid, 1);
    }
    observer.dropped(0, 2);
    for uid in [1, 3] {
        observer.departed(Instant::ZERO, 0, handle(0), (&datagram(1), meta(uid)));
    }
    assert_eq!(complaint(&mut observer), "nothing");
}

/// Copies made by an earlier link can arrive with other packets between them.
#[test]
fn whichever_copy_was_dropped_leaves_no_gap_in_the_order() {
    for order in [[1, 2], [2, 1]] {
        let mut observer = observer();
        for uid in [1, 2, 1, 3] {
            observer.entered(Instant::ZERO, 0, &mut ordered(), uid, 1);
        }
        observer.dropped(0, 1);
        for uid in order.into_iter().chain([3]) {
            observer.departed(Instant::ZERO, 0, handle(0), (&datagram(1), meta(uid)));
        }
        assert_eq!(complaint(&mut observer), "nothing", "{order:?}");
    }
}

#[test]
fn a_dropped_copy_excuses_no_other_packet() {
    let mut observer = observer();
    for uid in [1, 2, 1, 3] {
        observer.entered(Instant::ZERO, 0, &mut ordered(), uid, 1);
    }
    observer.dropped(0, 1);
    observer.departed(Instant::ZERO, 0, handle(0), (&datagram(1), meta(3)));
    assert!(complaint(&mut observer).contains("up delivers out of turn packet 3"));
}

#[test]
fn a_packet_from_nowhere_is_an_error() {
    let mut observer = observer();
    observer.departed(Instant::ZERO, 1, handle(0), (&datagram(1), meta(9)));
    assert!(complaint(&mut observer).contains("down delivers what it never got: packet 9"));
}

#[test]
fn a_queue_over_its_limit_is_an_error() {
    let mut observer = observer();
    let backlog = Backlog { packets: 6, bytes: 9_000 };
    let mut full = FixedLink(backlog, QueueLimit::Packets(5), true);
    observer.entered(Instant::ZERO, 0, &mut full, 1, 1);
    assert!(complaint(&mut observer).contains("queue of up over its limit"));
}

#[test]
fn a_datagram_that_changed_on_the_way_is_an_error() {
    for (arrives, expected) in [(1, "nothing"), (2, "packet 5 is not what was sent")] {
        let mut observer = observer();
        observer.sent(Instant::ZERO, 0, handle(3), (&datagram(1), meta(5)));
        observer.delivered(Instant::ZERO, 0, handle(3), (&datagram(arrives), meta(5)));
        assert!(complaint(&mut observer).contains(expected));
    }
}

#[test]
fn nothing_to_observe_costs_nothing() {
    let none =
        Observer::new(&network(), &link_name, &[Some("flow".to_owned())], None, false).unwrap();
    assert!(none.is_none());
    let _ = network().links[0].build(Seed(1), "up", false);
}
