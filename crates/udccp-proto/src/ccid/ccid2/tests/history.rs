//! Compares the packet history with a simple, slow model.

use udccp_base::{Instant, Rng, Seed};
use udccp_wire::Seqno;

use super::line::cells;
use crate::ccid::ccid2::history::{Change, History, Sent};

/// All packets ever sent, examined one by one.
#[derive(Default)]
struct Model {
    /// For every sequence number from 0: is it data, was it received, was it declared lost.
    packets: Vec<(bool, bool, bool)>,
}

impl Model {
    /// The data packets that a vector reports as received for the first time, and those lost as a
    /// result.
    fn ack(&mut self, ackno: usize, states: &[u8]) -> (Vec<usize>, Vec<usize>) {
        let (mut received, mut lost) = (Vec::new(), Vec::new());
        for (back, &state) in states.iter().enumerate() {
            let packet = &mut self.packets[ackno - back];
            if state != b'x' && !packet.1 {
                packet.1 = true;
                if packet.0 && !packet.2 {
                    received.push(ackno - back);
                }
            }
        }
        received.sort_unstable();
        let known = self.packets.iter().enumerate().rev().filter(|(_, p)| p.1);
        let Some((third, _)) = known.take(3).nth(2) else { return (received, lost) };
        for (seq, packet) in self.packets[..third].iter_mut().enumerate() {
            if packet.0 && !packet.1 && !packet.2 {
                packet.2 = true;
                lost.push(seq);
            }
        }
        (received, lost)
    }
}

/// What the network did to each packet: 'r' for received, 'x' for not received.
fn fates(rng: &mut Rng, packets: usize) -> Vec<u8> {
    (0..packets).map(|_| if rng.below(10) == 0 { b'x' } else { b'r' }).collect()
}

#[test]
fn the_history_agrees_with_a_model_over_random_losses_acks_and_gaps() {
    for seed in 0..40 {
        let mut rng = Seed(seed).stream("history");
        let base = if seed % 2 == 0 { Seqno::new(1000) } else { Seqno::MAX.sub(150) };
        let (mut model, mut history) = (Model::default(), History::new(1000));
        let fates = fates(&mut rng, 400);
        let mut acked = 0;
        while acked < 399 {
            while model.packets.len() < fates.len() && model.packets.len() < acked + 30 {
                let is_data = rng.below(4) > 0;
                if is_data {
                    history.push(base.add(model.packets.len() as u64), Instant::ZERO);
                }
                model.packets.push((is_data, false, false));
            }
            acked = (acked + rng.below(4) as usize).min(model.packets.len() - 1);
            if fates[acked] != b'r' {
                continue;
            }
            // The peer reports up to 40 packets.
            let speaks_of = (1 + rng.below(40) as usize).min(acked + 1);
            let states: Vec<u8> = (0..speaks_of).map(|back| fates[acked - back]).collect();
            let text = String::from_utf8(states.clone()).unwrap();
            let (mut received, mut lost) = (Vec::new(), Vec::new());
            let ackno = base.add(acked as u64);
            // Some packets are plain: they are only counted.
            let is_plain = |seq: Seqno| seed % 4 == 0 || seq.value() % 3 == 0;
            let (at, mut counted) = ((ackno, history.position(ackno)), 0);
            // With and without the fast path for one cell.
            let is_read =
                seed % 3 > 0 && history.read_one_cell(at, &cells(&text), is_plain, &mut counted);
            let visit = |sent: &Sent, change| {
                let number = sent.seq().distance_from(base) as usize;
                match change {
                    Change::Received => received.push(number),
                    Change::Lost => lost.push(number),
                    Change::Late => {}
                    other => panic!("{other:?}"),
                }
            };
            if !is_read {
                counted += history.read_ack_vector(at, &cells(&text), is_plain, visit);
            }
            received.sort_unstable();
            history.trim(20);
            let (of_model, lost_of_model) = model.ack(acked, &states);
            let (plain, others): (Vec<_>, _) =
                of_model.into_iter().partition(|&number| is_plain(base.add(number as u64)));
            let expected = (plain.len() as u32, others, lost_of_model);
            assert_eq!((counted, received, lost), expected, "seed {seed} at {acked}");
        }
        assert!(history.open_len() < 5, "seed {seed}: {} open", history.open_len());
    }
}

#[test]
fn the_oldest_packets_are_settled_like_all_others() {
    let mut short_ways = 0;
    for seed in 0..20 {
        let mut rng = Seed(seed).stream("oldest packets");
        let (mut one, mut other) = (History::new(1000), History::new(1000));
        let fates = fates(&mut rng, 400);
        let (mut sent, mut acked) = (0, 0);
        while acked < 399 {
            while sent < fates.len().min(acked + 30) {
                if rng.below(4) > 0 {
                    let (seq, at) = (Seqno::new(sent as u64), Instant::from_nanos(sent as u64));
                    one.push(seq, at);
                    other.push(seq, at);
                }
                sent += 1;
            }
            acked = (acked + rng.below(4) as usize).min(sent - 1);
            if fates[acked] != b'r' {
                continue;
            }
            let speaks_of = (1 + rng.below(40) as usize).min(acked + 1);
            let text: String = (0..speaks_of).map(|back| char::from(fates[acked - back])).collect();
            let (ackno, cells) = (Seqno::new(acked as u64), cells(&text));
            let read = |history: &mut History| {
                let (at, mut seen) = ((ackno, history.position(ackno)), Vec::new());
                let visit = |sent: &Sent, change| seen.push((sent.seq(), change));
                (history.read_ack_vector(at, &cells, |_| true, visit), seen)
            };
            let since = other.open_since(ackno, other.position(ackno));
            let expected = read(&mut other);
            let run = one.plain_run(ackno, cells[0]);
            if let Some((run, _)) = run {
                assert_eq!(run.sent_at.get(), since, "seed {seed} at {acked}");
            }
            short_ways += usize::from(run.is_some());
            let got = match run {
                Some((run, _)) => (one.take_plain_run(run, ackno), Vec::new()),
                None => read(&mut one),
            };
            assert_eq!(got, expected, "seed {seed} at {acked}");
            if rng.below(5) == 0 {
                let dropped = [&mut one, &mut other].map(|history| {
                    let mut count = 0;
                    history.mark_dropped(ackno, ackno.sub(speaks_of as u64), |_| count += 1);
                    count
                });
                assert_eq!(dropped[0], dropped[1], "seed {seed} at {acked}");
            }
            for history in [&mut one, &mut other] {
                history.trim(20);
            }
            assert_eq!(format!("{one:?}"), format!("{other:?}"), "seed {seed} at {acked}");
            assert!(one.final_len() <= 20, "seed {seed} at {acked}: few are kept");
        }
        assert!(one.final_len() >= 20, "seed {seed}: as many as wanted are kept");
    }
    assert!(short_ways > 500, "{short_ways}");
}

#[test]
fn an_open_packet_is_found_by_its_number_whatever_the_gaps() {
    let mut history = History::new(1000);
    let at = |n: u64| Instant::from_nanos(n);
    let data: Vec<u64> = (0..200).filter(|n| n % 7 != 3 && n % 11 != 5).collect();
    for &n in &data {
        history.push(Seqno::new(n), at(n));
    }
    for n in 0..220 {
        let expected = data.contains(&n).then_some(at(n));
        let seq = Seqno::new(n);
        assert_eq!(history.open_since(seq, history.position(seq)), expected, "{n}");
    }
    assert_eq!(History::new(1000).open_since(Seqno::new(1), 0), None);
}
