//! Cost of one packet on the hot path: parse and emit of a DataAck with a 16-byte Ack Vector. The
//! goal is 40 ns each. Peers in the same run: etherparse's TCP header with options of the same
//! size, and a plain copy of the same bytes.

use bytes::BytesMut;
use divan::{Bencher, black_box};
use etherparse::{TcpHeader, TcpHeaderSlice};
use udccp_wire::{
    Emitter, Header, HeaderKind, OptionRef, PacketView, PseudoHeader, Seqno, checksum::Sum, crc32c,
};

const CELLS: [u8; 16] = [0x3f, 0xc0, 5, 0xc1, 9, 0x40, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63];

fn main() {
    divan::main();
    let parse_ns = nanos({
        let bytes = packet();
        move || parse(black_box(&bytes)).map(|p| (p.1, p.2, p.3))
    });
    let emit_ns = nanos({
        let mut buf = BytesMut::with_capacity(2048);
        move || {
            buf.clear();
            emit(black_box(&mut buf), black_box(&header()), black_box(&pseudo()), 1400)
        }
    });
    let copy_ns = nanos(copy_of_the_same_bytes());
    let (tcp_parse_ns, tcp_emit_ns) = (nanos(etherparse_parse()), nanos(etherparse_emit()));
    report("parse", parse_ns, &[("etherparse TCP parse", tcp_parse_ns), ("copy", copy_ns)]);
    report("emit", emit_ns, &[("etherparse TCP emit", tcp_emit_ns), ("copy", copy_ns)]);
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its result")]
fn report(what: &str, ns: f64, peers: &[(&str, f64)]) {
    let goal = if ns < 40.0 { "met" } else { "missed" };
    print!("{what} DataAck with 16-byte Ack Vector: {ns:.1} ns (goal 40 ns {goal})");
    for (peer, peer_ns) in peers {
        print!(", {:.2} x {peer} ({peer_ns:.1} ns)", ns / peer_ns);
    }
    println!();
}

/// Nanoseconds per call: the fastest of many batches.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn nanos<T>(mut call: impl FnMut() -> T) -> f64 {
    const CALLS: u32 = 10_000;
    let batch = |_| {
        let begin = std::time::Instant::now();
        (0..CALLS).for_each(|_| drop(black_box(call())));
        begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..100).map(batch).fold(f64::INFINITY, f64::min)
}

fn header() -> Header {
    Header {
        src_port: 41_000,
        dst_port: 5001,
        ccval: 0,
        cscov: 0,
        x: true,
        seq: Seqno::new(0x1234_5678_9abc),
        kind: HeaderKind::DataAck { ack: Seqno::new(0xcba9_8765_4321) },
    }
}

fn pseudo() -> PseudoHeader {
    PseudoHeader::new([10, 1, 0, 1].into(), [10, 2, 0, 1].into())
}

#[inline]
fn emit(buf: &mut BytesMut, header: &Header, pseudo: &PseudoHeader, zeros: usize) -> usize {
    let mut emitter = Emitter::new(buf, header);
    let _ = emitter.option(&OptionRef::AckVector { nonce: false, cells: black_box(&CELLS) });
    emitter.finish(pseudo, &[], zeros)
}

fn packet() -> Vec<u8> {
    let mut buf = BytesMut::new();
    emit(&mut buf, &header(), &pseudo(), 1400);
    buf.to_vec()
}

#[divan::bench]
fn emit_data_ack(bencher: Bencher<'_, '_>) {
    let mut buf = BytesMut::with_capacity(2048);
    bencher.bench_local(|| {
        buf.clear();
        emit(black_box(&mut buf), black_box(&header()), black_box(&pseudo()), 1400)
    });
}

/// The same for a packet inside UDP, which has no DCCP checksum.
#[divan::bench]
fn emit_data_ack_encapsulated(bencher: Bencher<'_, '_>) {
    let mut buf = BytesMut::with_capacity(2048);
    bencher.bench_local(|| {
        buf.clear();
        let mut emitter = Emitter::new(black_box(&mut buf), black_box(&header()));
        let _ = emitter.option(&OptionRef::AckVector { nonce: false, cells: black_box(&CELLS) });
        emitter.finish_encapsulated(1400)
    });
}

/// Emits as an endpoint does: into an arena, frozen as shared bytes.
#[divan::bench]
fn emit_data_ack_split_freeze(bencher: Bencher<'_, '_>) {
    let mut arena = BytesMut::with_capacity(1 << 16);
    bencher.bench_local(|| {
        emit(&mut arena, black_box(&header()), black_box(&pseudo()), 1400);
        arena.split().freeze()
    });
}

#[divan::bench]
fn parse_data_ack(bencher: Bencher<'_, '_>) {
    let bytes = packet();
    bencher.bench_local(|| parse(black_box(&bytes)).map(|p| (p.1, p.2, p.3)));
}

#[inline]
fn parse(bytes: &[u8]) -> Option<(PacketView<'_>, u64, u64, usize)> {
    let view = PacketView::new(bytes, bytes.len() + 1400).ok()?;
    let mut cells_seen = 0;
    for option in view.options() {
        if let Ok(OptionRef::AckVector { cells, .. }) = option {
            cells_seen += cells.len();
        }
    }
    let ack = view.ack_raw().map_or(0, |a| a.bits().value());
    Some((view, view.seq_raw().bits().value(), ack, cells_seen))
}

#[divan::bench]
fn parse_and_verify_data_ack(bencher: Bencher<'_, '_>) {
    let bytes = packet();
    let pseudo = pseudo();
    bencher.bench_local(|| {
        let (view, seq, ack, cells) = parse(black_box(&bytes))?;
        Some((seq, ack, cells, view.verify_checksum(black_box(&pseudo), &[], 1400)))
    });
}

fn copy_of_the_same_bytes() -> impl FnMut() -> usize {
    let bytes = packet();
    let mut buf = BytesMut::with_capacity(2048);
    move || {
        buf.clear();
        buf.extend_from_slice(black_box(&bytes));
        black_box(&buf).len()
    }
}

/// A TCP header with 20 bytes of options, as etherparse represents it.
fn tcp() -> TcpHeader {
    let mut tcp = TcpHeader::new(41_000, 5001, 0x1234_5678, 65_535);
    tcp.set_options_raw(&[[1; 16].as_slice(), &[0; 4]].concat()).expect("twenty bytes fit");
    tcp
}

fn etherparse_emit() -> impl FnMut() -> bool {
    let mut buf = Vec::with_capacity(2048);
    let tcp = tcp();
    move || {
        buf.clear();
        let mut tcp = black_box(&tcp).clone();
        tcp.checksum = tcp.calc_checksum_ipv4_raw([10, 1, 0, 1], [10, 2, 0, 1], &[]).unwrap_or(0);
        tcp.write(&mut buf).is_ok()
    }
}

fn etherparse_parse() -> impl FnMut() -> Option<(u32, u32, usize)> {
    let mut bytes = Vec::new();
    tcp().write(&mut bytes).expect("memory is writable");
    move || {
        let slice = TcpHeaderSlice::from_slice(black_box(&bytes)).ok()?;
        let options = slice.options_iterator().filter(Result::is_ok).count();
        Some((slice.sequence_number(), slice.acknowledgment_number(), options))
    }
}

#[divan::bench]
fn peer_copy_of_the_same_bytes(bencher: Bencher<'_, '_>) {
    bencher.bench_local(copy_of_the_same_bytes());
}

#[divan::bench]
fn peer_emit_etherparse_tcp(bencher: Bencher<'_, '_>) {
    bencher.bench_local(etherparse_emit());
}

#[divan::bench]
fn peer_parse_etherparse_tcp(bencher: Bencher<'_, '_>) {
    bencher.bench_local(etherparse_parse());
}

#[divan::bench]
fn checksum_1400_bytes(bencher: Bencher<'_, '_>) {
    let bytes = vec![0xa5; 1400];
    bencher.bench_local(|| {
        let mut sum = Sum::new();
        sum.add(black_box(&bytes));
        sum.checksum()
    });
}

#[divan::bench]
fn crc32c_1400_bytes(bencher: Bencher<'_, '_>) {
    let bytes = vec![0xa5; 1400];
    bencher.bench_local(|| crc32c::crc32c(black_box(&bytes)));
}
