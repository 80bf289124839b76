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

/// As an endpoint does it: from an arena, as shared bytes.
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

#[divan::bench]
fn peer_copy_of_the_same_bytes(bencher: Bencher<'_, '_>) {
    let bytes = packet();
    let mut buf = BytesMut::with_capacity(2048);
    bencher.bench_local(|| {
        buf.clear();
        buf.extend_from_slice(black_box(&bytes));
        black_box(&buf).len()
    });
}

/// A TCP header with 20 bytes of options, as etherparse knows it.
fn tcp() -> TcpHeader {
    let mut tcp = TcpHeader::new(41_000, 5001, 0x1234_5678, 65_535);
    tcp.set_options_raw(&[[1; 16].as_slice(), &[0; 4]].concat()).expect("twenty bytes fit");
    tcp
}

#[divan::bench]
fn peer_emit_etherparse_tcp(bencher: Bencher<'_, '_>) {
    let mut buf = Vec::with_capacity(2048);
    let tcp = tcp();
    bencher.bench_local(|| {
        buf.clear();
        let mut tcp = black_box(&tcp).clone();
        tcp.checksum = tcp.calc_checksum_ipv4_raw([10, 1, 0, 1], [10, 2, 0, 1], &[]).unwrap_or(0);
        tcp.write(&mut buf).is_ok()
    });
}

#[divan::bench]
fn peer_parse_etherparse_tcp(bencher: Bencher<'_, '_>) {
    let mut bytes = Vec::new();
    tcp().write(&mut bytes).expect("memory is writable");
    bencher.bench_local(|| {
        let slice = TcpHeaderSlice::from_slice(black_box(&bytes)).ok()?;
        let options = slice.options_iterator().filter(Result::is_ok).count();
        Some((slice.sequence_number(), slice.acknowledgment_number(), options))
    });
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
