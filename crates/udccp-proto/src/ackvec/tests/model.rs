//! Compares the buffer with a simple model, a map from packet to state.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Known {
    state: CellState,
    nonce: bool,
}

#[derive(Clone, Debug)]
enum Step {
    /// A packet arrives this far ahead of the newest one, or behind it.
    Packet(i64, Ecn),
    /// This many packets arrive together, in order.
    Run(u64, Ecn),
    /// An acknowledgement is sent.
    Ack,
    /// A packet without a vector is sent.
    Data,
    /// The peer acknowledges our packet this many before the newest.
    AckOfAck(u64),
}

struct Model {
    buffer: AckVectorBuffer,
    packets: BTreeMap<u64, Known>,
    newest: u64,
    our_seq: u64,
    /// The reports in each of our acknowledgements.
    said: BTreeMap<u64, BTreeMap<u64, Known>>,
}

const START: u64 = 1000;
const UNKNOWN: Known = Known { state: CellState::NotReceived, nonce: false };

impl Model {
    fn new(max_cells: usize) -> Self {
        let buffer = AckVectorBuffer::new(max_cells);
        let (packets, said) = (BTreeMap::new(), BTreeMap::new());
        let mut model = Self { buffer, packets, newest: START - 1, our_seq: 0, said };
        model.packet(1, Ecn::Ect0);
        model
    }

    fn oldest(&self) -> u64 {
        self.newest + 1 - covered_packets(self.buffer.cells())
    }

    fn known(&self, n: u64) -> Known {
        self.packets.get(&n).copied().unwrap_or(UNKNOWN)
    }

    fn packet(&mut self, ahead: i64, ecn: Ecn) {
        let n = self.newest.saturating_add_signed(ahead).max(START);
        let held = n >= self.oldest();
        let arrival = self.buffer.on_packet(seq(n), ecn);
        self.note(n, held, ecn, arrival);
    }

    fn run(&mut self, count: u64, ecn: Ecn) {
        let first = self.newest + 1;
        let arrival = self.buffer.on_run(seq(first), count, ecn);
        (first..first + count).for_each(|n| self.note(n, true, ecn, arrival));
    }

    /// Packet `n` arrived. The buffer held it or had space for it.
    fn note(&mut self, n: u64, held: bool, ecn: Ecn, arrival: Arrival) {
        let old = self.known(n).state;
        let expected = match n.checked_sub(self.newest) {
            Some(1) => Arrival::InOrder,
            Some(step @ 2..) => Arrival::Gap { missing: step - 1 },
            _ if !held => Arrival::Forgotten,
            _ if old == CellState::NotReceived => Arrival::Late,
            _ => Arrival::Duplicate,
        };
        assert_eq!(arrival, expected);
        self.newest = self.newest.max(n);
        match (expected, ecn) {
            (Arrival::Forgotten, _) => {}
            (_, Ecn::Ce) => {
                self.packets.insert(n, Known { state: CellState::Marked, nonce: false });
            }
            (Arrival::Duplicate, _) => {}
            (_, ecn) => {
                let nonce = ecn == Ecn::Ect1;
                self.packets.insert(n, Known { state: CellState::Received, nonce });
            }
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Packet(ahead, ecn) => self.packet(ahead, ecn),
            Step::Run(count, ecn) => self.run(count, ecn),
            Step::Data => self.our_seq += 1,
            Step::Ack => {
                self.our_seq += 1;
                self.buffer.on_ack_sent(seq(self.our_seq));
                let said = (self.oldest()..=self.newest).map(|n| (n, self.known(n))).collect();
                self.said.insert(self.our_seq, said);
            }
            Step::AckOfAck(back) => self.ack_of_ack(self.our_seq.saturating_sub(back)),
        }
    }

    /// Checks that only packets whose state the peer knows are discarded.
    fn ack_of_ack(&mut self, our_seq: u64) {
        let before = self.oldest();
        let overflowed = self.buffer.overflowed_packets();
        let known = self.buffer.on_ack_of_ack(seq(our_seq));
        assert_eq!(overflowed, self.buffer.overflowed_packets());
        let after = self.oldest();
        let Some(said) = self.said.get(&our_seq) else {
            assert_eq!((known, before), (None, after), "that packet carried no vector");
            return;
        };
        for n in before..after {
            // Older packets that the vector left out had been reported to the peer before.
            let reported = said.get(&n).map_or(self.known(n).state, |k| k.state);
            assert_eq!(reported, self.known(n).state, "packet {n} changed after it was said");
        }
    }

    fn check(&self, max_cells: usize) {
        let cells = self.buffer.cells();
        assert!(!cells.is_empty() && cells.len() <= max_cells.max(2));
        assert_eq!(self.buffer.ackno(), Some(seq(self.newest)));
        assert_ne!(CellState::of_cell(cells[0]), CellState::NotReceived);
        let mut states = BTreeMap::new();
        for run in Runs::new(seq(self.newest), cells) {
            for n in run.oldest.value()..=run.newest.value() {
                states.insert(n, run.state);
            }
        }
        let expected: BTreeMap<_, _> =
            (self.oldest()..=self.newest).map(|n| (n, self.known(n).state)).collect();
        assert_eq!(states, expected);
        let mut from = self.newest;
        for (echo, cells) in self.buffer.options() {
            let to = from + 1 - covered_packets(cells);
            let parity = (to..=from).filter(|&n| self.known(n).nonce).count() % 2 == 1;
            assert_eq!(echo, parity, "packets {to} to {from}");
            from = to - 1;
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let ahead = prop_oneof![
        20 => Just(1_i64),
        4 => 2_i64..6,
        4 => -8_i64..=0,
        1 => -300_i64..300,
    ];
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ect1, Ecn::Ce]);
    let count = prop_oneof![1_u64..70, 1_u64..1000];
    prop_oneof![
        2 => (count, ecn.clone()).prop_map(|(count, ecn)| Step::Run(count, ecn)),
        8 => (ahead, ecn).prop_map(|(ahead, ecn)| Step::Packet(ahead, ecn)),
        4 => Just(Step::Ack),
        1 => Just(Step::Data),
        1 => (0_u64..12).prop_map(Step::AckOfAck),
    ]
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() }
}

proptest! {
    #![proptest_config(config())]

    //= 4340-A-1 test
    //= 4340-11.4.1-1 test
    #[test]
    fn the_buffer_agrees_with_a_map(
        max_cells in prop::sample::select(vec![2_usize, 5, 20, 300, 506]),
        steps in prop::collection::vec(step(), 0..400),
    ) {
        let mut model = Model::new(max_cells);
        for step in &steps {
            model.take(step);
            model.check(max_cells);
        }
    }
}
