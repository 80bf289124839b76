//! Calls for many messages that are cut short, or that run while others use the same ring.

use super::*;

impl Both {
    /// Receives with one call; `None` stands for a message that needs special treatment.
    fn receive_into(&self, rooms: &[Option<IoVec>]) -> (Vec<u32>, Option<TakenMany>) {
        let mut all: Vec<MMsgHdr> =
            rooms.iter().map(|_| MMsgHdr { len: 9999, ..MMsgHdr::empty() }).collect();
        for (one, room) in all.iter_mut().zip(rooms) {
            let piece =
                room.as_ref().map_or(core::ptr::null_mut(), |r| core::ptr::from_ref(r).cast_mut());
            one.header = MsgHdr::of(piece, 1);
        }
        let into = |one: &MMsgHdr| {
            // SAFETY: each has the one piece that it was made of, or none.
            let piece = unsafe { one.header.iov.as_ref() }?;
            Some(Into { pieces: core::slice::from_ref(piece), fd: self.socket.as_raw_fd() })
        };
        // SAFETY: the pieces are valid, or not writable.
        let many = unsafe { self.ring.receive_many(&mut all, into) };
        (all.iter().map(|one| one.len).collect(), many)
    }
}

fn piece(data: &mut [u8]) -> Option<IoVec> {
    Some(IoVec { base: data.as_mut_ptr().cast(), len: data.len() })
}

#[test]
fn unreceivable_message_ends_the_call_and_stays_queued() {
    let both = Both::new();
    for message in [b"one", b"two"] {
        both.broker.put(message, RX_BYTES).unwrap();
    }
    let mut data = [0; 8];
    let bad = Some(IoVec { base: core::ptr::without_provenance_mut(4096), len: 8 });
    assert_eq!(both.receive_into(&[bad, piece(&mut data)]).1, None);
    assert_eq!(both.receive_into(&[None, piece(&mut data)]).1, None);
    let first = Some(TakenMany { count: 1, was_last: false, has_room: false });
    assert_eq!(both.receive_into(&[piece(&mut data), bad, bad]), (vec![3, 9999, 9999], first));
    assert_eq!(&data, b"one\0\0\0\0\0");
    both.broker.put(b"three", RX_BYTES).unwrap();
    assert_eq!(both.receive_into(&[piece(&mut data), None]), (vec![3, 9999], first));
    assert_eq!(&data, b"two\0\0\0\0\0");
    assert_eq!(both.receive(8, false).unwrap().0, b"three");
}

/// Receives with one call, and runs `meanwhile` after the first read of the ring.
fn receive_while(both: &Both, meanwhile: impl Fn()) -> (Vec<u8>, Option<TakenMany>) {
    let mut data = [0; 16];
    let (first, second) = data.split_at_mut(8);
    let rooms = [piece(first).unwrap(), piece(second).unwrap()];
    let header = |room: &IoVec| MsgHdr::of(core::ptr::from_ref(room).cast_mut(), 1);
    let mut all = [&rooms[0], &rooms[1]].map(|room| MMsgHdr { header: header(room), len: 0 });
    let is_first = core::cell::Cell::new(true);
    let into = |one: &MMsgHdr| {
        if is_first.replace(false) {
            meanwhile();
        }
        // SAFETY: each has the one piece that it was made of.
        let pieces = unsafe { core::slice::from_raw_parts(one.header.iov, 1) };
        Some(Into { pieces, fd: both.socket.as_raw_fd() })
    };
    // SAFETY: the pieces are valid.
    let many = unsafe { both.ring.receive_many(&mut all, into) };
    (data.to_vec(), many)
}

#[test]
fn messages_taken_by_others_are_not_received_twice() {
    let both = Both::new();
    let put = |message: &[u8]| assert_eq!(both.broker.put(message, RX_BYTES), Ok(true));
    put(b"one");
    put(b"two");
    let (data, many) = receive_while(&both, || assert!(both.receive(8, false).is_some()));
    assert_eq!((&data[..3], many.unwrap().count), (&b"two"[..], 1));
    // By then, the memory may be used from its beginning again.
    put(b"one");
    put(b"two");
    let (data, many) = receive_while(&both, || {
        assert_eq!(both.receive_many(&[8; 2]).0.len(), 2);
        put(b"three");
    });
    assert_eq!((&data[..5], many.unwrap().count), (&b"three"[..], 1));
    put(b"one");
    assert_eq!(receive_while(&both, || drop(both.receive(8, false))).1, None);
    assert!(!both.broker.has_unread());
}

#[test]
fn the_call_that_frees_space_reports_it() {
    let both = Both::new();
    while both.broker.put(&[1; 992], 10_000).unwrap() {}
    assert_eq!(both.broker.want_room(), Ok(true));
    let room_of = |count| both.receive_many(&vec![1000; count]).1.unwrap().has_room;
    assert!(!room_of(4) && room_of(2) && !room_of(2));
}

/// A closure for messages of any lifetime.
const fn of_each<F: Fn(&MsgHdr) -> Option<(&[IoVec], u32)>>(f: F) -> F {
    f
}

#[test]
fn one_call_reserves_few_places() {
    let both = Both::new();
    let mut data = [7; 10];
    let piece = piece(&mut data).unwrap();
    let one = || MsgHdr::of(core::ptr::from_ref(&piece).cast_mut(), 1);
    let mut all: Vec<MMsgHdr> = (0..40).map(|_| MMsgHdr { header: one(), len: 0 }).collect();
    let sent = core::cell::Cell::new(0);
    let plain = of_each(|message| {
        let taken = TX_PLACES as usize - both.ring.free_places() - sent.get();
        assert!((1..=AT_ONCE).contains(&taken), "{taken} after {} messages", sent.get());
        sent.set(sent.get() + 1);
        // SAFETY: the piece is valid.
        Some((unsafe { core::slice::from_raw_parts(message.iov, 1) }, 3))
    });
    // SAFETY: as above.
    assert_eq!(unsafe { both.ring.send_many(40, &mut all, plain) }, 40);
    assert_eq!(both.broker.take(&mut BytesMut::new()), Ok(Some((10, 3))));
}

#[test]
fn only_unused_places_are_returned() {
    let both = Both::new();
    let bad = core::ptr::without_provenance::<u8>(8);
    // SAFETY: never read: the kernel is asked first.
    let bad = unsafe { core::slice::from_raw_parts(bad, 5) };
    let messages: Vec<Vec<u8>> = (0..100u8).map(|n| vec![n; 9]).collect();
    for message in &messages[..70] {
        both.send(message, 200).unwrap();
    }
    // Not the places of the messages that wait in the first 64.
    assert_eq!(both.send_many(&[&messages[70], bad, bad], 200), [9]);
    for message in &messages[71..] {
        assert_eq!(both.send_many(&[message], 200), [9]);
    }
    for message in messages {
        assert_eq!(both.take(), Ok(Some((message, 3))));
    }
    assert_eq!(both.ring.free_places(), TX_PLACES as usize);
}

#[test]
fn messages_of_a_call_count_against_the_next() {
    let both = Both::new();
    assert_eq!(both.send_many(&[b"a", b"b"], 3), [1, 1]);
    assert!(!both.ring.is_full(3));
    assert_eq!(both.send_many(&[b"c", b"d"], 3), [1]);
    assert!(both.ring.is_full(3));
    // If other senders have taken the end of the ring meanwhile, the call continues after them.
    assert!(both.take().unwrap().is_some());
    both.ring.long(TX_TAIL_AT).store(0, Ordering::SeqCst);
    assert_eq!(both.send_many(&[b"e"], 3), [1]);
    assert_eq!(both.ring.long(TX_TAIL_AT).load(Ordering::SeqCst), 4);
    for message in [b"b", b"c", b"e"] {
        assert_eq!(both.take(), Ok(Some((message.to_vec(), 3))));
    }
}

/// Sends its numbers in calls of one to five messages.
fn send_numbers(both: &Both, from: u32, to: u32) {
    let mut next = from;
    while next < to {
        let all: Vec<[u8; 4]> = (next..to.min(next + 1 + next % 5)).map(u32::to_ne_bytes).collect();
        let all: Vec<&[u8]> = all.iter().map(|m| &m[..]).collect();
        match both.send_many(&all, 9).len() {
            0 => std::thread::yield_now(),
            sent => next += sent as u32,
        }
    }
}

/// Receives numbers in calls of up to six messages until `left` is 0.
fn receive_numbers(both: &Both, left: &AtomicU32) -> Vec<u32> {
    let mut got = Vec::new();
    while left.load(Ordering::SeqCst) > 0 {
        let (some, many) = both.receive_many(&[4; 6]);
        if many.is_none() {
            std::thread::yield_now();
        }
        left.fetch_sub(some.len() as u32, Ordering::SeqCst);
        got.extend(some.iter().map(|(m, _)| u32::from_ne_bytes(m[..].try_into().unwrap())));
    }
    got
}

#[test]
fn calls_of_threads_send_and_receive_each_message_once_and_in_their_order() {
    const EACH: u32 = 6000;
    const THREADS: u32 = 3;
    let both = Both::new();
    let left = AtomicU32::new(EACH * THREADS);
    std::thread::scope(|scope| {
        let (both, left) = (&both, &left);
        for thread in 0..THREADS {
            scope.spawn(move || send_numbers(both, thread * EACH, (thread + 1) * EACH));
        }
        let receivers: Vec<_> =
            (0..THREADS).map(|_| scope.spawn(|| receive_numbers(both, left))).collect();
        let mut next: Vec<u32> = (0..THREADS).map(|thread| thread * EACH).collect();
        for _ in 0..EACH * THREADS {
            let message = loop {
                match both.take().unwrap() {
                    Some((message, _)) => break message,
                    None => std::thread::yield_now(),
                }
            };
            let value = u32::from_ne_bytes(message[..].try_into().unwrap());
            assert_eq!(value, next[(value / EACH) as usize]);
            next[(value / EACH) as usize] += 1;
            while !both.broker.put(&message, 500).unwrap() {
                std::thread::yield_now();
            }
        }
        let mut got = Vec::new();
        for receiver in receivers {
            let some = receiver.join().unwrap();
            for thread in 0..THREADS {
                assert!(some.iter().filter(|n| *n / EACH == thread).is_sorted());
            }
            got.extend(some);
        }
        got.sort_unstable();
        assert!(got.iter().copied().eq(0..EACH * THREADS));
    });
    assert_eq!(both.ring.free_places(), TX_PLACES as usize);
}
