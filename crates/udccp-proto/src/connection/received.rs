//! A received packet, on its way through the processing steps.

use bytes::{Bytes, BytesMut};
use udccp_base::{Datagram, Ecn, Payload, QuickStart};
use udccp_wire::{PacketType, PacketView, ResetCode, Seqno, crc32c};

use super::recv_side::Pressure;
use crate::ids::ListenerId;
use crate::tuple::FourTuple;

/// Longest header in bytes that a message may keep allocated.
const LONG_HEADER: usize = 96;

/// A datagram as it arrived, with what its driver knows about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    /// The datagram.
    pub(crate) datagram: &'a Datagram,
    /// Its Quick-Start option, and its time to live.
    pub(crate) quick_start: Option<(QuickStart, u8)>,
    /// How full the driver's own receive buffer is.
    pub(crate) pressure: Pressure,
}

/// Result of handling a packet, for the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handled {
    /// Nothing is left to do for the endpoint.
    Done,
    /// The handshake is done, and the application may accept the connection from this listener.
    Accepted(ListenerId),
    /// The endpoint has to answer it like a packet without a connection, with this Reset.
    Refused(ResetCode),
}

/// A packet that passed step 1. It borrows its parts, which were just written and would be slow to
/// copy.
#[derive(Debug)]
pub(crate) struct Received<'a> {
    /// Its header.
    pub(crate) view: &'a PacketView<'a>,
    /// The datagram it came in, with the driver's information.
    pub(crate) arrival: &'a Arrival<'a>,
    /// Its type.
    pub(crate) ty: PacketType,
    /// Its sequence number. For a short one, this has only the low bits before step 6.
    pub(crate) seq: Seqno,
    /// Its acknowledgement number, with the same limit.
    pub(crate) ackno: Option<Seqno>,
    /// Its ECN codepoint, as reported to the peer.
    pub(crate) ecn: Ecn,
    /// Value of its Data Checksum option.
    pub(crate) data_checksum: Option<u32>,
    /// Whether it was received before.
    pub(crate) is_duplicate: bool,
}

impl<'a> Received<'a> {
    /// A packet with this header.
    #[inline]
    pub(crate) fn new(view: &'a PacketView<'a>, arrival: &'a Arrival<'a>) -> Self {
        Self {
            view,
            arrival,
            ty: view.packet_type(),
            seq: view.seq_raw().bits(),
            ackno: view.ack_raw().map(|raw| raw.bits()),
            ecn: arrival.datagram.ecn,
            data_checksum: None,
            is_duplicate: false,
        }
    }

    /// The tuple of the connection to which it would belong.
    pub(crate) fn tuple(&self) -> FourTuple {
        FourTuple {
            local: self.arrival.datagram.dst,
            local_port: self.view.dst_port(),
            remote: self.arrival.datagram.src,
            remote_port: self.view.src_port(),
        }
    }

    /// Whether it belongs to the connection with this tuple.
    #[inline]
    pub(crate) fn is_of(&self, tuple: &FourTuple) -> bool {
        let datagram = self.arrival.datagram;
        self.view.src_port() == tuple.remote_port
            && self.view.dst_port() == tuple.local_port
            && datagram.src == tuple.remote
            && datagram.dst == tuple.local
    }

    /// Whether the packet carries data for the application. Data and DataAck without bytes carry an
    /// empty message; Request and Response without bytes carry none (RFC 4340 section 5.4).
    pub(crate) fn carries_message(&self) -> bool {
        match self.ty {
            PacketType::Data | PacketType::DataAck => true,
            PacketType::Request | PacketType::Response => self.view.data_len() > 0,
            _ => false,
        }
    }

    /// The application data, as a slice of the datagram. It is copied only if it is in two parts,
    /// or behind so many options that the slice would keep far more memory allocated than it uses.
    pub(crate) fn payload(&self) -> Payload {
        let in_header = self.view.payload_in_header().len();
        if in_header == 0 {
            return self.arrival.datagram.payload.clone();
        }
        let start = self.view.data_offset();
        let first = self.arrival.datagram.header.slice(start..start + in_header);
        if self.arrival.datagram.payload.is_empty() {
            let is_long_header = start > LONG_HEADER && start > in_header / 4;
            let kept = if is_long_header { Bytes::copy_from_slice(&first) } else { first };
            return Payload::Bytes(kept);
        }
        Payload::Bytes(joined(&first, &self.arrival.datagram.payload.to_bytes()))
    }

    /// Whether the data matches the Data Checksum option, if there is one.
    pub(crate) fn data_is_intact(&self) -> bool {
        self.data_checksum.is_none_or(|sum| sum == data_checksum(&self.payload()))
    }
}

/// CRC-32c of a payload (RFC 4340 section 9.3).
pub(crate) fn data_checksum(payload: &Payload) -> u32 {
    let mut crc = crc32c::Crc32c::new();
    match payload {
        Payload::Bytes(bytes) => crc.update(bytes),
        Payload::Zeros(n) => crc.update_zeros(*n as usize),
    }
    crc.finish()
}

fn joined(first: &Bytes, second: &Bytes) -> Bytes {
    let mut both = BytesMut::with_capacity(first.len() + second.len());
    both.extend_from_slice(first);
    both.extend_from_slice(second);
    both.freeze()
}
