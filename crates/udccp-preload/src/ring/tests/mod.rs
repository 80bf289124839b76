use std::collections::HashSet;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use bytes::BytesMut;

use super::many::AT_ONCE;
use super::*;
use crate::abi::{EAGAIN, EFAULT, IoVec, MMsgHdr, MsgHdr};
use crate::sys;

mod many;

/// Both sides of a ring, and a socket with which the library checks memory.
struct Both {
    broker: BrokerRing,
    ring: Ring,
    socket: std::net::UdpSocket,
}

// SAFETY: like programs, which share a ring among threads.
unsafe impl Sync for Both {}

impl Both {
    fn new() -> Self {
        let folder = std::env::temp_dir();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("ring-{}-{count}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(RING_BYTES as u64).unwrap();
        let broker = BrokerRing::map(file.as_fd(), 7).unwrap();
        let at = sys::map_to_write(file.as_raw_fd(), core::ptr::null_mut(), RING_BYTES);
        // SAFETY: just mapped, and never unmapped.
        let ring = unsafe { Ring::at(at) };
        assert_eq!(ring.cookie(), 7);
        Self { broker, ring, socket: std::net::UdpSocket::bind("127.0.0.1:0").unwrap() }
    }

    fn send(&self, message: &[u8], queue: u64) -> Result<bool, i32> {
        let (head, tail) = message.split_at(message.len() / 2);
        let pieces = [head, tail]
            .map(|part| IoVec { base: part.as_ptr().cast_mut().cast(), len: part.len() });
        // SAFETY: the pieces are valid.
        unsafe { self.ring.send(&pieces, message.len(), 3, queue) }
    }

    /// Sends messages with one call. Returns the lengths that it reports.
    fn send_many(&self, messages: &[&[u8]], queue: u64) -> Vec<usize> {
        let piece = |m: &&[u8]| IoVec { base: m.as_ptr().cast_mut().cast(), len: m.len() };
        let pieces: Vec<IoVec> = messages.iter().map(piece).collect();
        let header = |piece: &IoVec| MsgHdr::of(core::ptr::from_ref(piece).cast_mut(), 1);
        let mut all: Vec<MMsgHdr> =
            pieces.iter().map(|piece| MMsgHdr { header: header(piece), len: 9999 }).collect();
        fn plain(message: &MsgHdr) -> Option<(&[IoVec], u32)> {
            // SAFETY: each has the one piece that it was made of.
            Some((unsafe { core::slice::from_raw_parts(message.iov, 1) }, 3))
        }
        // SAFETY: the pieces are valid.
        let sent = unsafe { self.ring.send_many(queue, &mut all, plain) };
        all[..sent].iter().map(|one| one.len as usize).collect()
    }

    /// Receives with one call into buffers of `rooms` bytes each. Returns each buffer's content and
    /// the message's length.
    fn receive_many(&self, rooms: &[usize]) -> (Vec<(Vec<u8>, usize)>, Option<TakenMany>) {
        let mut data: Vec<Vec<u8>> = rooms.iter().map(|room| vec![0; *room]).collect();
        let mut all: Vec<MMsgHdr> = rooms.iter().map(|_| MMsgHdr::empty()).collect();
        let pieces: Vec<IoVec> = data
            .iter_mut()
            .map(|data| IoVec { base: data.as_mut_ptr().cast(), len: data.len() })
            .collect();
        for (one, piece) in all.iter_mut().zip(&pieces) {
            one.header = MsgHdr::of(core::ptr::from_ref(piece).cast_mut(), 1);
        }
        let into = |one: &MMsgHdr| {
            // SAFETY: as above.
            let pieces = unsafe { core::slice::from_raw_parts(one.header.iov, 1) };
            Some(Into { pieces, fd: self.socket.as_raw_fd() })
        };
        // SAFETY: the pieces are valid.
        let many = unsafe { self.ring.receive_many(&mut all, into) };
        let count = many.map_or(0, |many| many.count);
        (data.into_iter().zip(all.iter().map(|one| one.len as usize)).take(count).collect(), many)
    }

    fn take(&self) -> Result<Option<(Vec<u8>, u32)>, CorruptRing> {
        let mut room = BytesMut::from(&b"before"[..]);
        let taken = self.broker.take(&mut room)?;
        self.broker.publish_taken();
        assert_eq!(room.len(), 6 + taken.map_or(0, |(len, _)| len));
        Ok(taken.map(|(_, priority)| (room[6..].to_vec(), priority)))
    }

    fn receive(&self, room: usize, is_peek: bool) -> Option<(Vec<u8>, Taken)> {
        let mut data = vec![0; room];
        let (head, tail) = data.split_at_mut(room / 3);
        let pieces =
            [head, tail].map(|part| IoVec { base: part.as_mut_ptr().cast(), len: part.len() });
        let into = Into { pieces: &pieces, fd: self.socket.as_raw_fd() };
        // SAFETY: the pieces are valid.
        let taken = unsafe { self.ring.receive(&into, is_peek) }.unwrap()?;
        data.truncate(taken.len);
        Some((data, taken))
    }
}

#[test]
fn messages_to_the_broker_keep_order_bytes_and_priority() {
    let both = Both::new();
    for turn in 0..300usize {
        let message = vec![turn as u8; turn * 7 % (MAX_MESSAGE + 1)];
        assert_eq!(both.send(&message, 5), Ok(false));
        assert_eq!(both.take(), Ok(Some((message, 3))));
        assert_eq!(both.take(), Ok(None));
    }
}

#[test]
fn queue_is_full_at_its_length_its_grant_or_its_capacity() {
    let both = Both::new();
    for n in 1..=5 {
        assert_eq!(both.send(b"x", 5), Ok(n == 5));
    }
    assert_eq!(both.send(b"x", 5), Err(EAGAIN));
    both.ring.plug();
    assert!(!both.broker.needs_unplug(5), "it is full");
    assert!(both.take().unwrap().is_some());
    assert!(both.broker.needs_unplug(5));
    // Four messages wait. Congestion control would send three of them and two more.
    both.broker.grant(3 + 2);
    for n in 1..=6 {
        assert_eq!(both.send(b"x", 5), Ok(n == 6));
    }
    both.broker.grant(1000);
    let most = (0..1000).take_while(|_| both.send(b"x", 5).is_ok()).count();
    assert_eq!(most, TX_MOST - 10);
    while both.take().unwrap().is_some() {}
    both.broker.grant(0);
    assert_eq!((0..1000).take_while(|_| both.send(b"x", 5).is_ok()).count(), 5);
}

#[test]
fn ring_size_does_not_depend_on_shared_memory() {
    let both = Both::new();
    both.ring.long(TX_ROOM_AT).store(u64::MAX, Ordering::SeqCst);
    both.ring.long(TX_GRANT_AT).store(1000, Ordering::SeqCst);
    assert_eq!((0..1000).take_while(|_| both.send(b"x", 5).is_ok()).count(), TX_MOST);
}

#[test]
fn senders_killed_at_any_step_block_nobody() {
    let both = Both::new();
    // A killed sender had reserved a place.
    let _ = both.ring.long(TX_FREE_AT).fetch_and(!1, Ordering::SeqCst);
    assert_eq!(both.send(b"a", 5), Ok(false));
    // A killed sender had published its message and not counted it.
    both.ring.long(TX_TAIL_AT).fetch_sub(1, Ordering::SeqCst);
    assert!(!both.ring.is_full(1 + 1));
    assert_eq!(both.send(b"b", 5), Ok(false));
    assert_eq!(both.take(), Ok(Some((b"a".to_vec(), 3))));
    both.ring.long(TX_TAIL_AT).fetch_sub(1, Ordering::SeqCst);
    assert_eq!(both.take(), Ok(Some((b"b".to_vec(), 3))));
    assert_eq!(both.send(b"c", 1), Ok(true));
    assert_eq!(both.take(), Ok(Some((b"c".to_vec(), 3))));
}

#[test]
fn places_of_killed_senders_are_not_free() {
    let both = Both::new();
    // Each killed sender held the most places that one can hold.
    for _ in 0..30 {
        assert_eq!(both.ring.reserve(AT_ONCE).count(), AT_ONCE);
    }
    let left = TX_PLACES as usize - 30 * AT_ONCE;
    for _ in 0..3 {
        both.broker.grant(1000);
        for n in 1..=left {
            assert_eq!(both.send(b"x", 5), Ok(n == left), "{n} of {left}");
        }
        assert_eq!(both.send(b"x", 5), Err(EAGAIN));
        assert!(!both.ring.has_place());
        both.ring.plug();
        assert!(!both.broker.needs_unplug(5));
        assert!(both.take().unwrap().is_some());
        both.broker.grant(1000);
        assert!(both.broker.needs_unplug(5));
        while both.take().unwrap().is_some() {}
    }
    both.broker.grant(0);
    assert_eq!((0..1000).take_while(|_| both.send(b"x", 5).is_ok()).count(), 5);
}

/// Otherwise the ring is full although no sender has plugged the socket.
#[test]
fn sends_while_places_are_counted_lose_none() {
    const MESSAGES: usize = 50_000;
    let both = Both::new();
    let mut least = u64::MAX;
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut sent = 0;
            while sent < MESSAGES {
                sent += usize::from(both.send(b"x", u64::MAX).is_ok());
            }
        });
        let mut slab = BytesMut::new();
        while !sender.is_finished() {
            while both.broker.take(&mut slab).unwrap().is_some() {
                slab.clear();
            }
            both.broker.grant(0);
            least = least.min(both.ring.long(TX_ROOM_AT).load(Ordering::SeqCst));
        }
    });
    assert_eq!(least, TX_MOST as u64);
}

#[test]
fn ring_without_free_places_is_full_until_one_returns() {
    let both = Both::new();
    assert_eq!(both.send(b"x", 5), Ok(false));
    while both.ring.reserve(AT_ONCE).count() > 0 {}
    assert!(!both.broker.is_starved(), "a message waits");
    assert!(both.take().unwrap().is_some());
    while both.ring.reserve(AT_ONCE).count() > 0 {}
    assert!(both.broker.is_starved() && both.ring.is_full(5));
    both.ring.set_free(64, 2);
    assert!(!both.broker.is_starved() && !both.ring.is_full(5));
    assert_eq!(both.send(b"y", 5), Ok(true));
    assert_eq!(both.take(), Ok(Some((b"y".to_vec(), 3))));
}

#[test]
fn a_call_sends_as_many_messages_as_have_room() {
    let both = Both::new();
    let messages: Vec<Vec<u8>> = (0..100usize).map(|n| vec![n as u8; n * 10]).collect();
    let all: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    for round in 0..20 {
        // Some messages, sent one by one, wait already.
        let before = round % 3;
        for _ in 0..before {
            assert_eq!(both.send(b"first", 40), Ok(false));
        }
        let sent = both.send_many(&all, 40);
        assert_eq!(sent, (0..40 - before).map(|n| n * 10).collect::<Vec<_>>());
        assert_eq!(both.send_many(&all, 40), [], "it is full");
        for _ in 0..before {
            assert_eq!(both.take(), Ok(Some((b"first".to_vec(), 3))));
        }
        for message in &messages[..40 - before] {
            assert_eq!(both.take(), Ok(Some((message.clone(), 3))));
        }
        assert_eq!(both.take(), Ok(None));
    }
    assert_eq!(both.ring.free_places(), TX_PLACES as usize, "no place was lost");
}

#[test]
fn unsendable_message_ends_the_call_and_takes_no_place() {
    let both = Both::new();
    let bad = core::ptr::without_provenance::<u8>(8);
    // SAFETY: never read: the kernel is asked first.
    let bad = unsafe { core::slice::from_raw_parts(bad, 5) };
    assert_eq!(both.send_many(&[b"a", b"bc", bad, b"d"], 40), [1, 2]);
    assert_eq!(both.take(), Ok(Some((b"a".to_vec(), 3))));
    assert_eq!(both.take(), Ok(Some((b"bc".to_vec(), 3))));
    assert_eq!(both.take(), Ok(None));
    assert_eq!(both.ring.free_places(), TX_PLACES as usize);
}

#[test]
fn receive_call_reports_whether_messages_remain() {
    let both = Both::new();
    assert_eq!(both.receive_many(&[10; 3]), (Vec::new(), None));
    for message in [&b"one"[..], b"", b"three"] {
        both.broker.put(message, RX_BYTES).unwrap();
    }
    let (got, many) = both.receive_many(&[10, 2]);
    assert_eq!(got, [(b"one\0\0\0\0\0\0\0".to_vec(), 3), (vec![0; 2], 0)]);
    assert_eq!(many, Some(TakenMany { count: 2, was_last: false, has_room: false }));
    let (got, many) = both.receive_many(&[2, 10]);
    assert_eq!(got, [(b"th".to_vec(), 5)], "cut, with its true length");
    assert_eq!(many, Some(TakenMany { count: 1, was_last: true, has_room: false }));
    assert!(!both.broker.has_unread());
}

#[test]
fn received_messages_wrap_truncate_and_can_be_peeked() {
    let both = Both::new();
    let message =
        |turn: usize| -> Vec<u8> { (0..turn * 31 % 3000).map(|n| (n + turn) as u8).collect() };
    // One message is always unread: otherwise the memory is used from its beginning again.
    assert_eq!(both.broker.put(&message(0), RX_BYTES), Ok(true));
    for turn in 0..1000usize {
        assert_eq!(both.broker.put(&message(turn + 1), RX_BYTES), Ok(true));
        let message = message(turn);
        let (peeked, taken) = both.receive(3000, true).unwrap();
        assert_eq!((peeked, taken.was_last), (message.clone(), false));
        assert_eq!(both.ring.next_len(), Some(message.len()));
        let room = turn % 7 * 500;
        if turn % 2 == 0 {
            let (got, taken) = both.receive(room, false).unwrap();
            assert_eq!(got, message[..message.len().min(room)]);
            assert_eq!((taken.len, taken.was_last), (message.len(), false));
        } else {
            let (got, many) = both.receive_many(&[room]);
            assert_eq!(got[0].0[..room.min(message.len())], message[..message.len().min(room)]);
            assert_eq!((got[0].1, many.unwrap().was_last), (message.len(), false));
        }
    }
    assert!(both.receive(10, false).unwrap().1.was_last);
    assert!(both.receive(10, false).is_none());
}

#[test]
fn receive_ring_restarts_when_empty() {
    let both = Both::new();
    let first = |both: &Both| {
        let (at, _) = both.ring.rx(RECORD_HEADER as u64);
        // SAFETY: within the mapping.
        unsafe { core::slice::from_raw_parts(at, 3) }.to_vec()
    };
    both.broker.put(b"one", RX_BYTES).unwrap();
    both.broker.put(b"two", RX_BYTES).unwrap();
    assert_eq!(both.receive(3, false).unwrap().0, b"one");
    // A reader that is still copying this must find that it was taken.
    both.broker.put(b"six", RX_BYTES).unwrap();
    assert_eq!(first(&both), b"one", "a message waits");
    assert_eq!(both.receive_many(&[3; 2]).0.len(), 2);
    both.broker.put(b"ten", RX_BYTES).unwrap();
    assert_eq!(first(&both), b"ten");
    assert_eq!(both.ring.next_len(), Some(3));
    assert_eq!(both.receive(3, true).unwrap().0, b"ten");
    assert_eq!(both.receive_many(&[3]).0, [(b"ten".to_vec(), 3)]);
}

#[test]
fn unread_data_is_limited_and_free_space_is_reported() {
    let both = Both::new();
    let put = (0..1000).take_while(|_| both.broker.put(&[1; 992], 10_000).unwrap()).count();
    assert_eq!(put, 10);
    assert_eq!(both.broker.want_room(), Ok(true));
    for n in 1..=10 {
        assert_eq!(both.receive(1000, false).unwrap().1.has_room, n == 5, "{n}");
    }
    assert_eq!(both.broker.want_room(), Ok(false), "there is room");
    // One message is always accepted, unless the memory is too small for it.
    assert_eq!(both.broker.put(&[1; 20_000], 10_000), Ok(true));
    assert_eq!(both.broker.put(b"", 10_000), Ok(false));
    both.receive(1000, false).unwrap();
    assert_eq!(both.broker.put(&[1; RX_BYTES], RX_BYTES), Ok(false));
}

#[test]
fn a_bell_is_pending_while_messages_are_for_each_waiting_thread() {
    let both = Both::new();
    assert_eq!(both.broker.bells(0).1, 0);
    both.broker.put(b"1", RX_BYTES).unwrap();
    both.broker.put(b"2", RX_BYTES).unwrap();
    assert_eq!(both.broker.bells(2), (1, 1));
    assert_eq!(both.broker.bells(0).1, 0, "it is there");
    both.receive(10, false).unwrap();
    assert_eq!(both.ring.release(), None, "a message is left");
    both.receive(10, false).unwrap();
    assert_eq!((both.ring.release(), both.ring.release()), (Some(1), None));
    assert!(!both.ring.is_rung(1));
    both.broker.put(b"3", RX_BYTES).unwrap();
    assert_eq!(both.broker.bells(1), (2, 1));
    assert!(both.ring.is_rung(2) && !both.ring.is_gone(2));
    assert!(both.ring.mark_bell_taken(2) && !both.ring.is_rung(2) && both.ring.is_gone(2));
    assert!(!both.ring.mark_bell_taken(1) && both.ring.is_gone(2));
    assert_eq!(both.broker.bells(0), (3, 1), "it was lost");
    assert_eq!(both.broker.bells(0).1, 0);
    assert_eq!(both.broker.resend_bells(), (4, 1), "who took it said nothing");
    assert!(both.ring.mark_bell_taken(3) && both.ring.is_rung(4), "it says so later");
    assert_eq!(both.broker.bells(0).1, 0, "a newer one is there");
    for _ in 0..3 {
        both.ring.count_waiter(true);
    }
    both.broker.put(b"4", RX_BYTES).unwrap();
    both.broker.put(b"5", RX_BYTES).unwrap();
    assert_eq!(both.broker.bells(2), (5, 2));
}

#[test]
fn broker_sleep_ends_only_with_its_own_bell() {
    let both = Both::new();
    let first = both.ring.sleep().unwrap();
    both.send(b"x", 5).unwrap();
    assert!(!both.broker.sleep(), "a message is there");
    assert_eq!(both.ring.sleep(), None);
    both.take().unwrap();
    assert!(both.broker.sleep());
    both.ring.end_sleep(first);
    let second = both.ring.sleep().unwrap();
    both.ring.end_sleep(second);
    assert_eq!(both.ring.sleep(), None);
}

#[test]
fn memory_that_the_kernel_cannot_read_or_write_is_an_error() {
    let both = Both::new();
    let bad = [IoVec { base: 4096 as *mut _, len: 10 }];
    // SAFETY: the test checks that it is not readable.
    assert_eq!(unsafe { both.ring.send(&bad, 10, 0, 5) }, Err(EFAULT));
    both.broker.put(b"0123456789", RX_BYTES).unwrap();
    let into = Into { pieces: &bad, fd: both.socket.as_raw_fd() };
    // SAFETY: as above.
    assert_eq!(unsafe { both.ring.receive(&into, false) }, Err(EFAULT));
    assert_eq!(both.receive(10, false).unwrap().0, b"0123456789");
}

#[test]
fn corrupt_ring_state_is_detected() {
    let spoil = [
        |both: &Both| both.ring.order(0).store(1 << PLACE_BITS | TX_PLACES, Ordering::SeqCst),
        |both: &Both| {
            both.ring.order(0).store(1 << PLACE_BITS, Ordering::SeqCst);
            both.ring.int(TX_PLACES_AT).store(MAX_MESSAGE as u32 + 1, Ordering::SeqCst);
        },
    ];
    for spoil in spoil {
        let both = Both::new();
        spoil(&both);
        assert_eq!(both.take(), Err(CorruptRing));
    }
    let numbers = [
        TX_TAIL_AT,
        TX_FREE_AT,
        TX_HEAD_AT,
        TX_GRANT_AT,
        TX_ROOM_AT,
        RX_TAIL_AT,
        RX_ROOM_AT,
        RX_BASE_AT,
    ];
    for (at, value) in numbers.into_iter().flat_map(|at| [(at, u64::MAX), (at, 1 << 63)]) {
        let both = Both::new();
        both.ring.long(at).store(value, Ordering::SeqCst);
        both.ring.plug();
        both.broker.needs_unplug(5);
        assert_eq!(both.take(), Ok(None));
        both.broker.grant(1);
        both.broker.sleep();
        assert_eq!(both.broker.put(b"x", RX_BYTES), Ok(true));
        assert_eq!(both.broker.bells(1), (1, 1));
        both.broker.want_room().unwrap();
    }
    for head in [1, RX_BYTES as u64 + 1, u64::MAX] {
        let both = Both::new();
        both.ring.long(RX_HEAD_AT).store(head, Ordering::SeqCst);
        assert_eq!(both.broker.put(b"x", RX_BYTES), Err(CorruptRing));
        assert_eq!(both.broker.want_room(), Err(CorruptRing));
    }
}

#[test]
fn threads_send_and_receive_each_message_once_and_in_their_order() {
    const EACH: u32 = 5000;
    const THREADS: u32 = 3;
    let both = Both::new();
    let number = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().unwrap());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let both = &both;
            scope.spawn(move || {
                for n in 0..EACH {
                    let message = (thread * EACH + n).to_ne_bytes();
                    let is_sent = || match n % 2 {
                        0 => both.send(&message, 9).is_ok(),
                        _ => !both.send_many(&[&message], 9).is_empty(),
                    };
                    while !is_sent() {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let receivers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let mut got = Vec::new();
                    loop {
                        if got.len() % 2 == 0 {
                            let ends = |got: &(Vec<u8>, usize)| got.1 == 0;
                            let (some, _) = both.receive_many(&[4]);
                            if some.first().is_some_and(ends) {
                                return got;
                            }
                            got.extend(some.iter().map(|(message, _)| number(message)));
                        }
                        match both.receive(8, false) {
                            Some((message, _)) if message.is_empty() => return got,
                            Some((message, _)) => got.push(number(&message)),
                            None => std::thread::yield_now(),
                        }
                    }
                })
            })
            .collect();
        let mut next: Vec<u32> = (0..THREADS).map(|thread| thread * EACH).collect();
        let mut left = EACH * THREADS;
        while left > 0 {
            let Some((message, _)) = both.take().unwrap() else {
                std::thread::yield_now();
                continue;
            };
            let value = number(&message);
            assert_eq!(value, next[(value / EACH) as usize]);
            next[(value / EACH) as usize] += 1;
            while !both.broker.put(&message, 500).unwrap() {
                std::thread::yield_now();
            }
            left -= 1;
        }
        for _ in 0..THREADS {
            while !both.broker.put(b"", RX_BYTES).unwrap() {
                std::thread::yield_now();
            }
        }
        let got: Vec<u32> = receivers.into_iter().flat_map(|r| r.join().unwrap()).collect();
        assert_eq!(got.len(), (EACH * THREADS) as usize);
        assert_eq!(got.iter().collect::<HashSet<_>>().len(), got.len());
    });
}
