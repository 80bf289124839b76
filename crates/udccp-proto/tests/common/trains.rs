//! Datagrams that are received or sent in buffers, as a network card merges them.

use bytes::{Bytes, BytesMut};
use udccp_base::{Datagram, HeaderBytes, Instant, Machine, Payload};
use udccp_proto::{Endpoint, Train};

/// Most datagrams in one buffer.
const MOST: usize = 64;

/// Merges datagrams into buffers. Those in a buffer have the same path, ECN codepoint and size,
/// except that the last one may be shorter.
pub fn merged(datagrams: impl IntoIterator<Item = Datagram>) -> Vec<Vec<Datagram>> {
    let mut buffers: Vec<Vec<Datagram>> = Vec::new();
    for d in datagrams {
        let fits = |buffer: &Vec<Datagram>| {
            let (first, last) = (&buffer[0], &buffer[buffer.len() - 1]);
            let same_path = (first.src, first.dst, first.ecn) == (d.src, d.dst, d.ecn);
            let len = first.transport_len();
            same_path
                && buffer.len() < MOST
                && last.transport_len() == len
                && d.transport_len() <= len
        };
        match buffers.last_mut().filter(|buffer| fits(buffer)) {
            Some(buffer) => buffer.push(d),
            None => buffers.push(vec![d]),
        }
    }
    buffers
}

/// The concatenated bytes of these datagrams.
fn bytes_of(buffer: &[Datagram]) -> Bytes {
    let mut bytes = BytesMut::new();
    for d in buffer {
        bytes.extend_from_slice(&d.header);
        bytes.extend_from_slice(&d.payload.to_bytes());
    }
    bytes.freeze()
}

/// Passes in a whole buffer. Returns how many datagrams the endpoint processed at once.
pub fn take_train(end: &mut Endpoint, now: Instant, buffer: &[Datagram]) -> usize {
    let len = buffer[0].transport_len();
    let header = HeaderBytes::first_in_buffer(bytes_of(buffer), len as u16);
    let mut train = Datagram { header, payload: Payload::EMPTY, ..buffer[0].clone() };
    let mut alone = 0;
    while end.handle_run(now, &mut train) {
        end.handle_borrowed(now, &train);
        alone += 1;
        if !train.header.advance(1) {
            break;
        }
    }
    buffer.len() - alone
}

/// Passes in the datagrams of a buffer one by one.
pub fn take_one_by_one(end: &mut Endpoint, now: Instant, buffer: &[Datagram]) {
    for d in buffer {
        let header = bytes_of(std::slice::from_ref(d)).into();
        end.handle_datagram(now, Datagram { header, payload: Payload::EMPTY, ..d.clone() });
    }
}

/// A batch of datagrams with the same path and size, except that the last may be shorter.
struct Batch(Vec<Datagram>);

impl Train for Batch {
    fn takes(&self, len: usize) -> bool {
        let (first, last) = (self.0[0].transport_len(), self.0[self.0.len() - 1].transport_len());
        self.0.len() < MOST && last == first && len <= first
    }

    fn put(&mut self, header: &[u8], payload: &Payload) {
        let header = HeaderBytes::short(header).expect("a plain header is short");
        self.0.push(Datagram { header, payload: payload.clone(), ..self.0[0].clone() });
    }
}

/// The endpoint's next datagram and those that follow it in a train.
pub fn poll_train(end: &mut Endpoint, now: Instant) -> Vec<Datagram> {
    let Some(first) = end.poll_transmit(now) else { return Vec::new() };
    let mut batch = Batch(vec![first.clone()]);
    let count = end.poll_run(now, &first, &mut batch);
    assert_eq!(batch.0.len(), count as usize + 1);
    batch.0
}
