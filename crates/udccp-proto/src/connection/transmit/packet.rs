//! Writes one packet with its header, options and checksum, and accounts for it.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use udccp_base::{Datagram, Ecn, HeaderBytes, Instant, Payload};
use udccp_wire::{Checksum, Emitter, Header, HeaderKind, OptionRef, PacketType, Seqno, UsualAck};

use super::super::received::data_checksum;
use super::super::{Arena, Connection, Ctx};
use crate::ccid::{OptionSink, SentInfo};
use crate::state::State;

/// No address, until the address of a packet is written.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Which options were written on a packet.
#[derive(Clone, Copy, Default)]
pub(super) struct WrittenOptions {
    /// The whole Ack Vector.
    vector: bool,
    /// Data Dropped.
    dropped: bool,
    /// Feature negotiation options.
    features: bool,
}

/// An emitter limited to the room that a packet has.
struct Bounded<'e, 'b> {
    emitter: &'e mut Emitter<'b>,
    room: usize,
    /// Bytes of the room that are reserved for Init Cookies.
    kept: usize,
}

impl OptionSink for Bounded<'_, '_> {
    fn option(&mut self, option: &OptionRef<'_>) -> bool {
        option.encoded_len() <= self.room_bytes() && self.emitter.option(option).is_ok()
    }

    fn room_bytes(&self) -> usize {
        self.room
            .saturating_sub(self.emitter.options_len() + self.kept)
            .min(self.emitter.remaining())
    }
}

impl Connection {
    /// Writes a packet of this kind, with the next sequence number, into `out`.
    pub(in super::super) fn write_packet(
        &mut self,
        ctx: &mut Ctx<'_>,
        out: &mut Option<Datagram>,
        kind: HeaderKind,
        payload: Payload,
    ) {
        let header = self.next_header(ctx.now, kind);
        self.write_any(ctx, out, &header, payload);
    }

    /// Writes a Data packet, usually by the fast path.
    #[inline(always)]
    pub(super) fn write_data(
        &mut self,
        ctx: &mut Ctx<'_>,
        out: &mut Option<Datagram>,
        payload: Payload,
    ) {
        let checksum = self.usual_checksum(&payload).filter(|_| !self.needs_long_way());
        let Some(checksum) = checksum else {
            return self.write_packet(ctx, out, HeaderKind::Data, payload);
        };
        let ccval = self.cc.ccval(ctx.now);
        let seq = self.seq.take_next();
        let header = self.usual_header(HeaderKind::Data, ccval, seq);
        match header.plain_data(checksum).map(HeaderBytes::of) {
            Some(bytes) => {
                self.put(ctx.now, out, &header, bytes, payload, WrittenOptions::default());
            }
            None => self.write_any(ctx, out, &header, payload),
        }
    }

    /// Writes an Ack, usually by the fast path.
    #[inline(always)]
    pub(super) fn write_ack(&mut self, ctx: &mut Ctx<'_>, out: &mut Option<Datagram>, ack: Seqno) {
        self.write_usual_ack(ctx, out, HeaderKind::Ack { ack }, 0, Payload::EMPTY);
    }

    /// Like [`Self::write_ack`], for a DataAck, which is rare.
    #[inline(never)]
    pub(super) fn write_data_ack(
        &mut self,
        ctx: &mut Ctx<'_>,
        out: &mut Option<Datagram>,
        ack: Seqno,
        payload: Payload,
    ) {
        let kind = HeaderKind::DataAck { ack };
        if self.state != State::Open {
            // In PARTOPEN it is sent whether or not all its options fit.
            return self.write_packet(ctx, out, kind, payload);
        }
        let ccval = self.cc.ccval(ctx.now);
        self.write_usual_ack(ctx, out, kind, ccval, payload);
    }

    #[inline(always)]
    fn write_usual_ack(
        &mut self,
        ctx: &mut Ctx<'_>,
        out: &mut Option<Datagram>,
        kind: HeaderKind,
        ccval: u8,
        payload: Payload,
    ) {
        let checksum = self.usual_checksum(&payload).filter(|_| !self.needs_long_way());
        let Some(checksum) = checksum else {
            return self.write_packet(ctx, out, kind, payload);
        };
        let seq = self.seq.take_next();
        let header = self.usual_header(kind, ccval, seq);
        let bytes = match self.has_unusual_options() {
            true => None,
            false => self.ack_bytes(ctx.now, ctx.arena, &header, checksum, payload.len()),
        };
        match bytes {
            Some(bytes) => {
                let written = WrittenOptions { vector: true, ..WrittenOptions::default() };
                self.put(ctx.now, out, &header, bytes, payload, written);
            }
            None => self.write_any(ctx, out, &header, payload),
        }
    }

    /// The header of an acknowledgement with the usual options, beside `size` bytes of data; `None`
    /// if it has others, or they do not fit.
    #[inline(always)]
    pub(super) fn ack_bytes(
        &self,
        now: Instant,
        arena: &mut Arena,
        header: &Header,
        checksum: Checksum,
        size: usize,
    ) -> Option<HeaderBytes> {
        let mut room = [0; UsualAck::ROOM];
        if let Some(bytes) = self.short_ack(now, header, checksum, &mut room) {
            return Some(arena.copy(bytes));
        }
        let options = self.usual_ack(now)?;
        if options.header_len() + size > self.path.max_transport_len() {
            return None;
        }
        let is_done = header.long_ack(&options, checksum, arena.buffer());
        is_done.then(|| arena.take())
    }

    /// The same, written to `room`, which must be zero, if it fits there, as nearly always.
    #[inline(always)]
    pub(super) fn short_ack<'r>(
        &self,
        now: Instant,
        header: &Header,
        checksum: Checksum,
        room: &'r mut [u8; UsualAck::ROOM],
    ) -> Option<&'r [u8]> {
        header.usual_ack(&self.usual_ack(now)?, checksum, room)
    }

    /// A header with this sequence number, the next one, for the fast path.
    #[inline(always)]
    pub(super) fn usual_header(&self, kind: HeaderKind, ccval: u8, seq: Seqno) -> Header {
        let (src_port, dst_port) = (self.who.tuple.local_port, self.who.tuple.remote_port);
        //= 5348-3.2.1-1
        Header { src_port, dst_port, ccval, cscov: 0, x: true, seq, kind }
    }

    /// The Checksum of a packet with this data; `None` if computing it needs the data.
    #[inline(always)]
    fn usual_checksum(&self, payload: &Payload) -> Option<Checksum> {
        let needs_data = matches!(payload, Payload::Bytes(_)) && !self.path.is_encapsulated();
        (!needs_data).then(|| self.zeros_checksum(payload.len()))
    }

    /// The Checksum of a packet with this many zero bytes of data, or with any data inside UDP.
    #[inline(always)]
    pub(super) fn zeros_checksum(&self, zeros: usize) -> Checksum {
        match self.path.is_encapsulated() {
            true => Checksum::Zero,
            false => Checksum::OfZeros(self.addresses, zeros),
        }
    }

    /// A header of this kind with the next sequence number.
    #[inline(always)]
    fn next_header(&mut self, now: Instant, kind: HeaderKind) -> Header {
        //= 4340-7.5.4-3
        //= 5348-3.2.1-1
        let seq = self.seq.take_next();
        self.header(now, kind, seq)
    }

    /// A header of this kind with this sequence number.
    #[inline(always)]
    pub(super) fn header(&mut self, now: Instant, kind: HeaderKind, seq: Seqno) -> Header {
        let is_data = matches!(kind, HeaderKind::Data | HeaderKind::DataAck { .. });
        let agreed = self.negotiation.agreed();
        let cscov = if is_data { self.send.coverage(agreed) } else { 0 };
        let x = !agreed.may_send_short();
        //= 4340-5.1-4
        let ccval = if is_data { self.cc.ccval(now) } else { 0 };
        Header {
            src_port: self.who.tuple.local_port,
            dst_port: self.who.tuple.remote_port,
            ccval,
            cscov,
            x,
            seq,
            kind,
        }
    }

    /// Writes a packet with this header and any options.
    #[inline(never)]
    pub(super) fn write_any(
        &mut self,
        ctx: &mut Ctx<'_>,
        out: &mut Option<Datagram>,
        header: &Header,
        payload: Payload,
    ) {
        let len = header.fixed_len() + payload.len();
        // Options are padded to whole words.
        let room = self.path.max_transport_len().saturating_sub(len) & !3;
        let room = self.credit.room(len, room);
        let mut emitter = Emitter::new(ctx.arena.buffer(), header);
        let mut sink = Bounded { emitter: &mut emitter, room, kept: 0 };
        let written = self.write_options(ctx.now, header, &payload, &mut sink);
        if self.path.is_encapsulated() {
            emitter.finish_encapsulated(payload.len());
        } else {
            let (bytes, zeros): (&[u8], _) = match &payload {
                Payload::Bytes(b) => (b, 0),
                Payload::Zeros(n) => (&[], *n as usize),
            };
            emitter.finish(&self.pseudo_header(), bytes, zeros);
        }
        let bytes = ctx.arena.take();
        self.credit.on_sent(bytes.len() + payload.len());
        if written.features {
            // The values that our Confirms agreed to apply from here on. On failure, a Reset
            // follows.
            let _ = self.take_activated(ctx);
        }
        self.put(ctx.now, out, header, bytes, payload, written);
    }

    /// Accounts for the packet that was written, and stores it in `out`.
    #[inline(always)]
    fn put(
        &mut self,
        now: Instant,
        out: &mut Option<Datagram>,
        header: &Header,
        bytes: HeaderBytes,
        payload: Payload,
        written: WrittenOptions,
    ) {
        let ty = header.packet_type();
        let ecn = self.ecn_of(now, ty);
        self.account(now, ty, header.seq, payload.len(), ecn, written);
        self.place(out, ecn, bytes, payload);
    }

    /// Stores a packet to the peer in `out`.
    #[inline(always)]
    pub(super) fn place(
        &self,
        out: &mut Option<Datagram>,
        ecn: Ecn,
        header: HeaderBytes,
        payload: Payload,
    ) {
        let (tuple, protocol) = (&self.who.tuple, Datagram::DCCP);
        let datagram = Datagram { src: NOWHERE, dst: NOWHERE, protocol, ecn, header, payload };
        // The old value is `None`, so there is nothing to drop.
        core::mem::forget(out.replace(datagram));
        if let Some(datagram) = out {
            // Large enums are only copied straight to their place if it exists.
            (datagram.src, datagram.dst) = (tuple.local, tuple.remote);
        }
    }

    /// Whether the next packet has, or may have, something that the fast path cannot write.
    #[inline(always)]
    pub(super) fn needs_long_way(&self) -> bool {
        let agreed = self.negotiation.agreed();
        let has_ndp_count = self.send.ndp_count(agreed).is_some();
        !agreed.is_plain || has_ndp_count || self.timing.owes_echo() || self.config.long_way_only
    }

    /// Whether acknowledgements may have options that others never have.
    #[inline(always)]
    fn has_unusual_options(&self) -> bool {
        self.quick_start.is_some()
            || self.credit.is_limited()
            || !self.handshake.cookies().is_empty()
            || !self.negotiation.is_settled()
    }

    /// The options of the acknowledgement that is being written, if they are the usual ones.
    #[inline(always)]
    fn usual_ack(&self, now: Instant) -> Option<UsualAck<'_>> {
        if self.recv.is_slow() || !self.negotiation.agreed().send_ack_vector {
            return None;
        }
        let (nonce, cells) = self.acks.lone_vector()?;
        Some(UsualAck { nonce, cells, elapsed: self.cc.usual_feedback(now)? })
    }

    /// ECN codepoint: only data and acknowledgements are congestion controlled, and may be marked.
    #[inline(always)]
    pub(super) fn ecn_of(&mut self, now: Instant, ty: PacketType) -> Ecn {
        let controlled = matches!(ty, PacketType::Data | PacketType::DataAck | PacketType::Ack);
        //= 4340-12-1
        //= 4340-12.1-4
        let capable = self.config.ecn && !self.negotiation.agreed().peer_ecn_incapable;
        if !controlled || !capable {
            return Ecn::NotEct;
        }
        self.cc.ecn(now, self.config.ecn_probe.filter(|_| ty != PacketType::Ack))
    }

    fn write_options(
        &mut self,
        now: Instant,
        header: &Header,
        payload: &Payload,
        sink: &mut Bounded<'_, '_>,
    ) -> WrittenOptions {
        let ty = header.packet_type();
        let mut written = WrittenOptions::default();
        if ty == PacketType::Response {
            // Without them, the handshake could not continue.
            sink.kept = self.handshake.cookie_bytes();
        }
        if ty == PacketType::Data {
            self.write_common(now, payload, ty, sink);
            return written;
        }
        match ty {
            PacketType::Ack | PacketType::DataAck | PacketType::Close | PacketType::Reset => {
                self.write_acknowledgement(now, ty, &mut written, sink);
            }
            PacketType::Sync if core::mem::take(&mut self.outbox.sync_with_vector) => {
                written.vector = self.write_vector(sink);
            }
            PacketType::Request | PacketType::Response if self.config.handshake_timestamps => {
                sink.option(&OptionRef::Timestamp(self.timing.send_timestamp(now)));
            }
            _ => {}
        }
        //= 4340-8.1.3-7
        //= 4340-8.1.3-8
        if ty == PacketType::Response {
            written.dropped = self.acks.write_dropped(self.ackno(), sink);
        }
        self.write_common(now, payload, ty, sink);
        written.features = self.write_features(now, ty, header.seq, sink);
        written
    }

    /// Options that any packet may need.
    fn write_common(
        &mut self,
        now: Instant,
        payload: &Payload,
        ty: PacketType,
        sink: &mut Bounded<'_, '_>,
    ) {
        if self.quick_start.is_some() {
            self.write_quick_start_response(ty, sink);
        }
        if let Some((timestamp, elapsed)) = self.timing.take_echo(now) {
            let elapsed = (elapsed > 0).then_some(elapsed);
            sink.option(&OptionRef::TimestampEcho { timestamp, elapsed });
        }
        //= 4340-7.7-1
        //= 4340-7.7.2-1
        let agreed = self.negotiation.agreed();
        if let Some(count) = self.send.ndp_count(agreed) {
            sink.option(&OptionRef::NdpCount(count));
        }
        let is_data = matches!(ty, PacketType::Data | PacketType::DataAck);
        if is_data && self.config.data_checksum && agreed.peer_checks_data {
            sink.option(&OptionRef::DataChecksum(data_checksum(payload)));
        }
        sink.kept = 0;
        //= 4340-8.1.4-1
        //= 4340-8.1.4-4
        //= 4340-8.1.5-2
        for cookie in self.handshake.cookies() {
            sink.option(&OptionRef::InitCookie(cookie));
        }
    }

    fn write_acknowledgement(
        &mut self,
        now: Instant,
        ty: PacketType,
        written: &mut WrittenOptions,
        sink: &mut Bounded<'_, '_>,
    ) {
        written.vector = self.write_vector(sink);
        written.dropped = self.acks.write_dropped(self.ackno(), sink);
        if !matches!(ty, PacketType::Ack | PacketType::DataAck) {
            return;
        }
        if self.recv.is_slow() {
            sink.option(&OptionRef::SlowReceiver);
        }
        self.cc.write_options(now, sink);
    }

    /// Writes the Ack Vector if that was negotiated. Returns whether all of it was written.
    fn write_vector(&self, sink: &mut Bounded<'_, '_>) -> bool {
        if !self.negotiation.agreed().send_ack_vector {
            return false;
        }
        //= 4340-11.5-1
        //= 4341-6-1
        //= 4341-6-2
        self.acks.write_vector(sink.room_bytes(), sink)
    }

    fn write_features(
        &mut self,
        now: Instant,
        ty: PacketType,
        seq: Seqno,
        sink: &mut Bounded<'_, '_>,
    ) -> bool {
        if self.negotiation.is_settled() {
            return false;
        }
        let room = sink.room_bytes();
        self.negotiation.write_options(now, seq, ty, room, sink)
    }

    /// Accounts for a packet that was sent.
    #[inline(always)]
    pub(super) fn account(
        &mut self,
        now: Instant,
        ty: PacketType,
        seq: Seqno,
        size: usize,
        ecn: Ecn,
        written: WrittenOptions,
    ) {
        let is_data = matches!(ty, PacketType::Data | PacketType::DataAck);
        if is_data {
            self.counters.data_packets_sent += 1;
            self.counters.data_bytes_sent += size as u64;
            self.timing.on_data_sent(now, seq);
            self.path.on_data_sent(seq, size);
        }
        if let Some(quick_start) = &mut self.quick_start {
            quick_start.on_sent(seq, is_data);
        }
        self.send.on_sent(ty);
        let has_ack = ty.has_ack() && !matches!(ty, PacketType::Sync | PacketType::SyncAck);
        self.outbox.on_sent(has_ack);
        let (size_bytes, app_limited) = (size as u32, self.send.queue().is_empty());
        self.cc.on_sent(now, SentInfo { seq, size_bytes, is_data, has_ack, app_limited, ecn });
        self.acks.on_sent(seq, written.vector, written.dropped);
        if self.state == State::PartOpen {
            self.start_partopen_timer(now);
        }
    }
}
