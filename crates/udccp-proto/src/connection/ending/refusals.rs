//! Counts ICMP port or protocol unreachable messages of the peer's host.

use udccp_wire::Seqno;

/// This many messages in a row end an open connection. A single one may be forged or late, or its
/// cause may have passed (RFC 5927 section 5.2).
const ENOUGH: u32 = 3;

/// A refused packet of ours, and the state of the connection when the message arrived.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Refused {
    /// The packet.
    pub(in super::super) seq: Seqno,
    /// Valid packets of the peer so far.
    pub(in super::super) received: u64,
    /// Greatest number sent.
    pub(in super::super) gss: Seqno,
    /// Greatest number acknowledged.
    pub(in super::super) gar: Seqno,
}

/// What a refusal means for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Refusal {
    /// Nothing: the quoted packet is too old.
    Old,
    /// The peer may be gone: send a Sync, which a live peer answers.
    Doubt,
    /// The peer is gone.
    Enough,
}

/// Refusals by the peer's host since the last valid packet.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals(Option<Counted>);

#[derive(Clone, Copy, Debug)]
struct Counted {
    count: u32,
    /// Valid packets received from the peer before them.
    received: u64,
    /// The next message counts only if it quotes a packet sent after the message before.
    after: Seqno,
}

impl Refusals {
    pub(super) fn add(&mut self, refused: Refused) -> Refusal {
        let Refused { seq, received, gss, gar } = refused;
        let before = self.0.filter(|before| before.received == received);
        let (count, after) = before.map_or((0, gar), |b| (b.count, b.after));
        if !seq.is_after(after) {
            return Refusal::Old;
        }
        let count = count + 1;
        self.0 = Some(Counted { count, received, after: gss });
        if count >= ENOUGH { Refusal::Enough } else { Refusal::Doubt }
    }
}
