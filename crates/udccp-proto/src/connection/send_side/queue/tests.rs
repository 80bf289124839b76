//! Tests of the queue.

use super::*;

fn message(bytes: u32, priority: u32, deadline: Option<u64>) -> Message {
    let deadline = deadline.map(Instant::from_nanos);
    Message { priority, deadline, ..Message::new(Payload::Zeros(bytes)) }
}

fn discarded(reason: DropReason, bytes: u32) -> Discarded {
    Discarded { reason, bytes, token: None }
}

fn lengths(queue: &mut SendQueue) -> Vec<usize> {
    core::iter::from_fn(|| queue.pop()).map(|(payload, _)| payload.len()).collect()
}

#[test]
fn larger_priorities_first_and_order_kept_within_one() {
    let mut q = SendQueue::new(10, 1000, QueuePolicy::Refuse);
    for (bytes, priority) in [(1, 0), (2, 5), (3, 0), (4, 9), (5, 5)] {
        q.push(Instant::ZERO, message(bytes, priority, None), &mut |_| {}).unwrap();
    }
    assert_eq!(lengths(&mut q), [4, 2, 5, 1, 3]);
    assert_eq!((q.packets(), q.bytes()), (0, 0));
}

#[test]
fn a_full_queue_gives_the_message_back_and_says_when_to_come_again() {
    let mut q = SendQueue::new(4, 1000, QueuePolicy::Refuse);
    for n in 1..=4 {
        q.push(Instant::ZERO, message(n, 0, None), &mut |_| {}).unwrap();
    }
    let back = q.push(Instant::ZERO, message(9, 0, None), &mut |_| {}).unwrap_err();
    assert_eq!(back.payload.len(), 9);
    q.pop();
    assert!(!q.take_writable());
    q.pop();
    assert!(q.take_writable() && !q.take_writable());
}

#[test]
fn the_lowest_newest_is_displaced_only_by_a_higher_one() {
    let mut q = SendQueue::new(2, 1000, QueuePolicy::DropLowest);
    let mut out = Vec::new();
    for (bytes, priority, taken) in [(1, 1, true), (2, 1, true), (3, 1, false), (4, 2, true)] {
        let r = q.push(Instant::ZERO, message(bytes, priority, None), &mut |t| out.push(t));
        assert_eq!(r.is_ok(), taken);
    }
    assert_eq!(out, [discarded(DropReason::Displaced, 2)]);
    assert_eq!(lengths(&mut q), [4, 1]);
}

/// A run behaves like the same messages queued one by one.
#[test]
fn a_run_of_zeros_is_as_many_messages() {
    let mut rng = udccp_base::Seed(3).stream("runs");
    for _ in 0..2_000 {
        let mut run = SendQueue::new(8, 60, QueuePolicy::DropLowest);
        let mut model = run.clone();
        for _ in 0..30 {
            let bytes = rng.below(3) as u32 + 1;
            let (what, now) = (rng.below(10), Instant::from_nanos(rng.below(20)));
            let (mut a, mut b) = (Vec::new(), Vec::new());
            match what {
                0..=3 if run.fits(bytes as usize) => {
                    let (most, largest) = (rng.below(4) as u32 + 1, bytes + rng.below(9) as u32);
                    let mut count = 0;
                    while count == 0 || count < most && model.fits(largest as usize) {
                        model.put(message(bytes, 0, None));
                        count += 1;
                    }
                    assert_eq!(run.put_zeros(bytes, most, largest as usize), count);
                }
                4 => {
                    let deadline = rng.chance(0.5).then(|| rng.below(20));
                    let m = message(20 + bytes, rng.below(3) as u32, deadline);
                    let taken = run.push(now, m.clone(), &mut |d| a.push(d));
                    assert_eq!(taken, model.push(now, m, &mut |d| b.push(d)));
                }
                5 => assert_eq!(run.pop(), model.pop()),
                6 => {
                    let front = run.front_len(now, &mut |d| a.push(d));
                    assert_eq!(front, model.front_len(now, &mut |d| b.push(d)));
                }
                8 => {
                    let (mut lent, most) = (0, rng.below(4));
                    let mut copied = Vec::new();
                    while lent < most && run.lend(|payload| copied.push(payload.clone())).is_some()
                    {
                        let (payload, _) = model.pop().expect("what the run lends");
                        assert_eq!(copied.pop(), Some(payload));
                        assert_eq!((run.packets(), run.bytes()), (model.packets(), model.bytes()));
                        lent += 1;
                    }
                    run.drop_lent();
                    assert!(lent > 0 || most == 0 || run.is_empty());
                }
                7 => {
                    run.remove_larger(bytes as usize, &mut |d| a.push(d));
                    model.remove_larger(bytes as usize, &mut |d| b.push(d));
                }
                _ => {
                    run.purge_expired(now, &mut |d| a.push(d));
                    model.purge_expired(now, &mut |d| b.push(d));
                }
            }
            assert_eq!(a, b);
            let seen = |q: &SendQueue| (q.packets(), q.bytes(), q.next_len(), q.next_deadline());
            assert_eq!(seen(&run), seen(&model));
        }
        while let Some(next) = run.pop() {
            assert_eq!(Some(next), model.pop());
        }
        assert_eq!((run.packets(), model.pop()), (0, None));
    }
}

/// References are dropped only after all copies. Each lent message has its own token.
#[test]
fn lent_messages_are_freed_at_the_end_and_have_one_priority() {
    let bytes = bytes::Bytes::from(vec![7; 10]);
    let mut q = SendQueue::new(10, 1000, QueuePolicy::Refuse);
    for (token, priority) in [(1, 0), (2, 0), (3, 4), (4, 4)] {
        let m = Message { token: Some(token), ..message(0, priority, None) };
        let m = Message { payload: Payload::Bytes(bytes.clone()), ..m };
        q.push(Instant::ZERO, m, &mut |_| {}).unwrap();
    }
    let lend = |q: &mut SendQueue| q.lend(|payload| assert_eq!(payload.len(), 10));
    assert_eq!([lend(&mut q), lend(&mut q)], [Some((10, Some(3))), Some((10, Some(4)))]);
    assert_eq!((lend(&mut q), q.next_len(), q.packets()), (None, None, 2));
    assert!(!bytes.is_unique());
    q.drop_lent();
    assert_eq!((lend(&mut q), q.packets(), q.next_len()), (Some((10, Some(1))), 1, Some(10)));
    q.drop_lent();
    assert_eq!(q.pop().map(|(_, token)| token), Some(Some(2)));
    assert!(bytes.is_unique() && q.pop().is_none());
}

#[test]
fn expired_messages_never_leave_and_are_reported() {
    let mut q = SendQueue::new(3, 1000, QueuePolicy::Refuse);
    for (bytes, deadline) in [(1, Some(10)), (2, None), (3, Some(10))] {
        q.push(Instant::ZERO, message(bytes, 0, deadline), &mut |_| {}).unwrap();
    }
    assert_eq!(q.next_deadline(), Some(Instant::from_nanos(10)));
    let mut out = Vec::new();
    let late = Instant::from_nanos(11);
    assert_eq!(q.front_len(late, &mut |t| out.push(t)), Some(2));
    assert_eq!(out, [discarded(DropReason::Expired, 1)]);
    q.push(late, message(4, 0, None), &mut |t| out.push(t)).unwrap();
    q.push(late, message(5, 0, None), &mut |t| out.push(t)).unwrap();
    assert_eq!(out, [1, 3].map(|bytes| discarded(DropReason::Expired, bytes)));
    assert_eq!(lengths(&mut q), [2, 4, 5]);
}

#[test]
fn the_earliest_deadline_is_known_wherever_it_waits() {
    let mut rng = udccp_base::Seed(5).stream("deadlines");
    let mut q = SendQueue::new(12, 1000, QueuePolicy::DropLowest);
    let mut stale = 0;
    for now in 0..4_000 {
        let at = Instant::from_nanos(now);
        let deadline = rng.chance(0.7).then(|| now + rng.below(30));
        let _ = q.push(at, message(1, rng.below(3) as u32, deadline), &mut |_| {});
        if rng.chance(0.6) {
            q.front_len(at, &mut |_| {});
            q.pop();
        }
        let waiting = |q: &SendQueue| {
            q.levels
                .iter()
                .flat_map(|l| &l.all)
                .flat_map(|l| &l.waiting)
                .filter_map(|w| w.deadline)
                .min()
        };
        // A timer may fire too early, but only once for the same message.
        if let Some(earliest) = waiting(&q) {
            let next = q.next_deadline().expect("a message waits");
            assert!(next <= earliest, "at {now}");
            stale += usize::from(next < earliest);
        }
        q.purge_expired(at, &mut |_| {});
        assert_eq!(q.next_deadline(), waiting(&q), "at {now}");
    }
    assert!(stale > 0);
}
