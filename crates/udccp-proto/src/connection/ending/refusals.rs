//! Counts reports of the peer's host that nobody is there (ICMP port or protocol unreachable).

use udccp_wire::Seqno;

/// This many messages in a row end an open connection. A single one may be forged, late, or of a
/// moment's confusion (RFC 5927 section 5.2).
const ENOUGH: u32 = 3;

/// A packet of ours that was refused, and what the connection knows by then.
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

/// What a refusal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Refusal {
    /// Nothing: it is of a packet that is too old.
    Old,
    /// Perhaps nobody is there: a Sync should ask, which a living peer answers.
    Doubt,
    /// Nobody is there.
    Enough,
}

/// What the peer's host has refused since a valid packet last arrived; made with the first.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals(Option<Box<Counted>>);

#[derive(Clone, Copy, Debug)]
struct Counted {
    count: u32,
    /// Valid packets of the peer until then.
    received: u64,
    /// The next message has to quote a later packet: one sent since the message before.
    after: Seqno,
}

impl Refusals {
    pub(super) fn add(&mut self, refused: Refused) -> Refusal {
        let Refused { seq, received, gss, gar } = refused;
        let before = self.0.as_deref().filter(|before| before.received == received);
        let (count, after) = before.map_or((0, gar), |b| (b.count, b.after));
        if !seq.is_after(after) {
            return Refusal::Old;
        }
        let count = count + 1;
        self.0 = Some(Box::new(Counted { count, received, after: gss }));
        if count >= ENOUGH { Refusal::Enough } else { Refusal::Doubt }
    }
}
