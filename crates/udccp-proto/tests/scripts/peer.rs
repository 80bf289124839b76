//! Builds the peer's packets from a script, and compares the endpoint's packets with the script.

use udccp_base::{Datagram, Ecn, Payload};
use udccp_wire::{Header, HeaderKind, Packet, PacketView, PseudoHeader, ResetCode, Seqno};

use crate::packet::{Data, PacketTemplate};
use crate::tokens::Number;
use crate::variables::wrapped;
use crate::world::World;

/// First sequence number of a peer without one in the script.
const FIRST_PEER_NUMBER: i128 = 1000;

impl World {
    /// The datagram that the peer sends.
    pub(crate) fn write(&mut self, p: &PacketTemplate) -> Result<Datagram, String> {
        let next = self.variables.get("gsr").map_or(FIRST_PEER_NUMBER, |n| n + 1);
        let seq = self.number(&p.seq)?.unwrap_or(next);
        let ack = match self.number(&p.ack)? {
            Some(ack) => ack,
            None => self.variables.get("gss").unwrap_or(0),
        };
        let small = |n: Option<i128>| n.unwrap_or(0) as u8;
        let mut data = [0; 3];
        for (byte, number) in data.iter_mut().zip(&p.reset_data) {
            *byte = small(self.number(number)?);
        }
        let service = p.service.unwrap_or(self.service);
        let code = p.code.unwrap_or(ResetCode::Closed);
        let header = Header {
            src_port: p.sport.unwrap_or(self.ports[1]),
            dst_port: p.dport.unwrap_or(self.ports[0]),
            ccval: small(self.number(&p.ccval)?),
            cscov: small(self.number(&p.cscov)?),
            x: !p.short.unwrap_or(false),
            seq: Seqno::new(wrapped(seq)),
            kind: HeaderKind::of(p.ty, Seqno::new(wrapped(ack)), service).with_reset(code, data),
        };
        if !p.forged {
            self.advance_peer(wrapped(seq));
        }
        let mut options = Vec::new();
        for option in p.options.iter().flat_map(|list| &list.wanted) {
            options.push(option.value(&self.variables)?);
        }
        let payload = match &p.data {
            None => Vec::new(),
            Some(Data::Text(text)) => text.clone(),
            Some(Data::Length(n)) => vec![0; *n],
        };
        let bytes = self.bytes(&Packet { header, options, payload }, p)?;
        Ok(self.datagram(bytes, p.ecn.unwrap_or(Ecn::NotEct)))
    }

    /// The packet's bytes, with the faults that the script requests.
    fn bytes(&self, packet: &Packet, p: &PacketTemplate) -> Result<Vec<u8>, String> {
        let pseudo = PseudoHeader::new(self.addresses[1].ip(), self.addresses[0].ip());
        let encapsulated = self.addresses[0].port() != 0;
        let bytes = if encapsulated { packet.emit_encapsulated() } else { packet.emit(&pseudo) };
        let mut bytes = bytes.map_err(|e| e.to_string())?;
        let broken = p.type_number.is_some() || p.offset.is_some() || p.cut > 0;
        if let Some(number) = p.type_number {
            bytes[8] = bytes[8] & 0xe1 | (number & 15) << 1;
        }
        if let Some(offset) = p.offset {
            bytes[4] = offset;
        }
        bytes.truncate(bytes.len().saturating_sub(p.cut));
        if broken && !encapsulated && bytes.len() >= 8 {
            // Only the requested faults should be wrong.
            bytes[6..8].copy_from_slice(&[0, 0]);
            let mut sum = pseudo.sum(udccp_wire::IP_PROTOCOL, bytes.len());
            sum.add(&bytes);
            bytes[6..8].copy_from_slice(&sum.checksum().to_be_bytes());
        }
        if packet.header.cscov > 0 {
            // Emission corrects a coverage beyond the end of the data, but a script may send it.
            bytes[5] |= packet.header.cscov & 15;
        }
        if p.bad_checksum {
            bytes[7] ^= 1;
        }
        Ok(bytes)
    }

    pub(crate) fn datagram(&self, bytes: Vec<u8>, ecn: Ecn) -> Datagram {
        let [dst, src] = self.addresses;
        let (header, payload) = (bytes.into(), Payload::EMPTY);
        Datagram { src, dst, protocol: Datagram::DCCP, ecn, header, payload }
    }

    fn number(&self, n: &Option<Number>) -> Result<Option<i128>, String> {
        n.as_ref().map(|n| self.variables.value(n)).transpose()
    }

    /// Updates `$isr` and `$gsr`, as the endpoint should see them.
    fn advance_peer(&mut self, seq: u64) {
        let newest = match self.variables.get("gsr") {
            None => {
                self.variables.set("isr", seq.into());
                Seqno::new(seq)
            }
            Some(gsr) => Seqno::new(gsr as u64).max(Seqno::new(seq)),
        };
        self.variables.set("gsr", newest.value().into());
    }

    /// The first difference between a packet of the endpoint and the script, if there is one.
    pub(crate) fn mismatch(&mut self, p: &PacketTemplate, d: &Datagram) -> Option<String> {
        let mut all = d.header.to_vec();
        all.extend_from_slice(&d.payload.to_bytes());
        let pseudo = PseudoHeader::new(d.src.ip(), d.dst.ip());
        let check = (d.dst.port() == 0).then_some(&pseudo);
        let packet = match Packet::parse(&all, check) {
            Ok(packet) => packet,
            Err(e) => return Some(format!("the packet is malformed: {e}")),
        };
        let ty = packet.header.packet_type();
        if ty != p.ty {
            return Some(format!("the type is {ty}, not {}", p.ty));
        }
        // A packet that does not match sets no variables.
        let before = self.variables.clone();
        let view = PacketView::new(&d.header, d.transport_len()).ok()?;
        let mut wrong = self.header_mismatch(p, &packet, &view);
        wrong = wrong.or_else(|| rest_mismatch(p, &packet, d));
        let list = p.options.as_ref().filter(|_| wrong.is_none());
        let wrong =
            wrong.or_else(|| list.and_then(|l| l.mismatch(&packet.options, &mut self.variables)));
        if wrong.is_some() {
            self.variables = before;
        }
        wrong
    }

    fn header_mismatch(
        &mut self,
        p: &PacketTemplate,
        packet: &Packet,
        view: &PacketView<'_>,
    ) -> Option<String> {
        let v = &mut self.variables;
        let header = &packet.header;
        let seq = header.seq.value();
        if p.seq.as_ref().is_some_and(|n| !v.meets_seq(n, seq)) {
            return Some(format!("seq is {seq}"));
        }
        let ack = header.kind.ack().map(|a| a.value());
        if let Some(wanted) = &p.ack
            && !ack.is_some_and(|ack| v.meets_seq(wanted, ack))
        {
            return Some(ack.map_or("there is no ack".into(), |n| format!("ack is {n}")));
        }
        for (name, wanted, is) in
            [("ccval", &p.ccval, header.ccval), ("cscov", &p.cscov, header.cscov)]
        {
            if wanted.as_ref().is_some_and(|n| !v.meets(n, is.into())) {
                return Some(format!("{name} is {is}"));
            }
        }
        let data = view.reset_data().unwrap_or_default();
        for (i, (wanted, is)) in p.reset_data.iter().zip(data).enumerate() {
            if wanted.as_ref().is_some_and(|n| !v.meets(n, is.into())) {
                return Some(format!("data{} is {is}", i + 1));
            }
        }
        let code = view.reset_code();
        if p.code.is_some() && p.code != code {
            return Some(format!(
                "the Reset Code is {}",
                code.map_or(String::new(), |c| c.to_string())
            ));
        }
        if p.service.is_some() && p.service != view.service_code() {
            return Some("the service code is another".into());
        }
        if p.short.is_some_and(|short| short == view.x()) {
            let kind = if view.x() { "48" } else { "24" };
            return Some(format!("sequence numbers have {kind} bits"));
        }
        None
    }
}

/// Compares data, ports and ECN.
fn rest_mismatch(p: &PacketTemplate, packet: &Packet, d: &Datagram) -> Option<String> {
    match &p.data {
        Some(Data::Text(text)) if *text != packet.payload => {
            return Some(format!("data is {:?}", String::from_utf8_lossy(&packet.payload)));
        }
        Some(Data::Length(n)) if *n != packet.payload.len() => {
            return Some(format!("data has {} bytes", packet.payload.len()));
        }
        _ => {}
    }
    if p.ecn.is_some_and(|ecn| ecn != d.ecn) {
        return Some(format!("ecn is {:?}", d.ecn));
    }
    let ports = [(p.sport, packet.header.src_port), (p.dport, packet.header.dst_port)];
    let wrong = ports.iter().find(|(wanted, is)| wanted.is_some_and(|w| w != *is));
    wrong.map(|(_, is)| format!("a port is {is}"))
}
