//! Two negotiators over a path that loses, reorders and duplicates finally agree.

use proptest::prelude::*;

use super::*;

/// An event. Ends are 0 (client) and 1 (server).
#[derive(Clone, Debug)]
enum Step {
    /// An end sends a packet with its pending options.
    Send(usize),
    /// Any packet on the way to an end arrives; a copy may arrive later.
    Deliver { to: usize, which: usize, again: bool },
    /// A packet on the way to an end is lost.
    Lose { to: usize, which: usize },
    /// An end changes its preference.
    Change { end: usize, local: bool, feature: u8, values: Vec<u64> },
    /// Time passes.
    Wait(u64),
}

struct Pair {
    ends: [End; 2],
    /// Packets on the way to each end.
    paths: [Vec<Packet>; 2],
}

impl Pair {
    fn new(wishes: [FeaturePreferences; 2]) -> Self {
        let [client, server] = wishes;
        let mut ends = [End::new(Role::Client, &client), End::new(Role::Server, &server)];
        for end in &mut ends {
            end.engine.set_phase(Phase::Open);
            end.engine.set_rtt(Duration::from_millis(100));
        }
        Self { ends, paths: [vec![], vec![]] }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Send(end) => {
                let packet = self.ends[end].send(PacketType::Ack);
                self.paths[1 - end].push(packet);
            }
            Step::Deliver { to, which, again } if !self.paths[to].is_empty() => {
                let which = which % self.paths[to].len();
                let packet = if again {
                    self.paths[to][which].clone()
                } else {
                    self.paths[to].remove(which)
                };
                self.deliver(to, &packet);
            }
            Step::Lose { to, which } if !self.paths[to].is_empty() => {
                let which = which % self.paths[to].len();
                self.paths[to].remove(which);
            }
            Step::Change { end, local, feature, ref values } => {
                let location = if local { L } else { R };
                let feature = FeatureNumber(feature);
                // A wrong location or value is an error without effect.
                let _ = self.ends[end].engine.change(location, feature, values, false);
            }
            Step::Wait(millis) => self.ends.iter_mut().for_each(|e| e.wait(millis)),
            _ => {}
        }
    }

    fn deliver(&mut self, to: usize, packet: &Packet) {
        // A packet far behind is outside the window, so the connection drops it before.
        if let Err(error) = self.ends[to].receive(packet) {
            panic!("two right engines never reset: {error} for {:?}", packet.shows());
        }
    }

    /// Without further losses, each end sends what is due until both are settled.
    fn settle(&mut self) -> u32 {
        for path in &mut self.paths {
            path.clear();
        }
        for round in 0..200 {
            if self.ends.iter().all(|e| e.engine.is_settled()) {
                return round;
            }
            for end in 0..2 {
                if self.ends[end].engine.take_packet_request(self.ends[end].now) {
                    let packet = self.ends[end].send(PacketType::Ack);
                    self.deliver(1 - end, &packet);
                }
                self.ends[end].wait(1_000);
            }
        }
        panic!("no agreement: {:#?}", self.ends);
    }

    fn agree(&mut self) {
        for number in 1..=9 {
            let feature = FeatureNumber(number);
            let [a, b] = &self.ends;
            assert_eq!(a.value(L, feature), b.value(R, feature), "{feature} at the client");
            assert_eq!(a.value(R, feature), b.value(L, feature), "{feature} at the server");
        }
        for end in &mut self.ends {
            for told in end.news() {
                assert_eq!(end.engine.value(told.location, told.feature), Some(told.value));
            }
        }
    }
}

/// A preference list of a feature. All lists of a feature share a value: otherwise the RFC's
/// "previous value" may differ between ends that negotiate at the same time, and no rule applies.
fn values(feature: u8) -> BoxedStrategy<Vec<u64>> {
    match feature {
        3 => (32_u64..200).prop_map(|v| vec![v]).boxed(),
        5 => (0_u64..9).prop_map(|v| vec![v]).boxed(),
        1 => with_common(2, 2_u64..6),
        8 => with_common(0, 0_u64..16),
        _ => prop::sample::select(vec![vec![0], vec![0, 1], vec![1, 0]]).boxed(),
    }
}

fn with_common(common: u64, range: core::ops::Range<u64>) -> BoxedStrategy<Vec<u64>> {
    let list = prop::collection::vec(range, 0..4);
    let place = any::<prop::sample::Index>();
    let insert = move |(mut list, place): (Vec<u64>, prop::sample::Index)| {
        list.insert(place.index(list.len() + 1), common);
        list
    };
    (list, place).prop_map(insert).boxed()
}

fn change() -> impl Strategy<Value = Step> {
    (0..2_usize, any::<bool>(), 1..=9_u8).prop_flat_map(|(end, local, feature)| {
        values(feature).prop_map(move |values| Step::Change { end, local, feature, values })
    })
}

fn step() -> impl Strategy<Value = Step> {
    let deliver = (0..2_usize, 0..50_usize, prop::bool::weighted(0.2))
        .prop_map(|(to, which, again)| Step::Deliver { to, which, again });
    prop_oneof![
        3 => (0..2_usize).prop_map(Step::Send),
        3 => deliver,
        1 => (0..2_usize, 0..50_usize).prop_map(|(to, which)| Step::Lose { to, which }),
        2 => change(),
        1 => (1_u64..3000).prop_map(Step::Wait),
    ]
}

fn wishes() -> impl Strategy<Value = FeaturePreferences> {
    let wish = (any::<bool>(), 1..=9_u8)
        .prop_flat_map(|(local, feature)| (Just(local), Just(feature), values(feature)));
    prop::collection::vec(wish, 0..6).prop_map(|list| {
        let mut preferences = FeaturePreferences::new();
        for (local, feature, values) in list {
            let location = if local { L } else { R };
            let _ = preferences.set(location, FeatureNumber(feature), &values);
        }
        preferences
    })
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() }
}

proptest! {
    #![proptest_config(config())]

    //= 4340-6.6.2-1 test
    //= 4340-6.6.3-1 test
    //= 4340-6.6.4-1 test
    //= 4340-6.6.6-1 test
    #[test]
    fn both_ends_agree_whatever_the_path_does(
        client in wishes(),
        server in wishes(),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut pair = Pair::new([client, server]);
        steps.iter().for_each(|s| pair.take(s));
        pair.settle();
        pair.agree();
    }

    /// Options with any content are answered or refused. Nothing panics, and the memory for unknown
    /// features is bounded.
    #[test]
    fn no_options_make_the_engine_panic(
        wishes in wishes(),
        options in prop::collection::vec(
            (32_u8..36, any::<u8>(), prop::collection::vec(any::<u8>(), 0..8), any::<bool>()),
            0..40,
        ),
    ) {
        let mut end = End::new(Role::Server, &wishes);
        end.engine.set_phase(Phase::Open);
        for (kind, feature, value, mandatory) in options {
            let mut data = vec![feature];
            data.extend(value);
            let mut options = vec![OptionValue { kind, data }];
            if mandatory {
                options.insert(0, OptionValue::from(OptionRef::Mandatory));
            }
            let seq = end.gsr.map_or(Seqno::new(1), Seqno::next);
            let ackno = Some(end.gss);
            let context = PacketContext { packet_type: PacketType::Ack, seq, ackno };
            let _ = end.receive(&Packet { context, options });
            end.send(PacketType::Ack);
        }
    }
}
