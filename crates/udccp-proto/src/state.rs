//! The nine states of RFC 4340 section 4.3 and the transitions between them (section 8.4).

use core::fmt;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// No connection.
    Closed,
    /// Server: waiting for Requests.
    Listen,
    /// Client: Request sent.
    Request,
    /// Server: Response sent.
    Respond,
    /// Client: Response received. The server may not know that yet.
    PartOpen,
    /// Data flows.
    Open,
    /// Server: CloseReq sent, waiting for the client's Close.
    CloseReq,
    /// Close sent, waiting for the Reset that confirms it.
    Closing,
    /// Ended; the addresses and ports stay in use until old packets have left the network.
    TimeWait,
}

impl State {
    /// All states, in the order of the RFC.
    pub const ALL: [Self; 9] = [
        Self::Closed,
        Self::Listen,
        Self::Request,
        Self::Respond,
        Self::PartOpen,
        Self::Open,
        Self::CloseReq,
        Self::Closing,
        Self::TimeWait,
    ];

    /// The states reachable in one transition. In addition, a Reset that is sent leads to CLOSED
    /// and one that is received to TIMEWAIT from every state that has a connection.
    pub const fn successors(self) -> &'static [Self] {
        use State::{
            CloseReq, Closed, Closing, Listen, Open, PartOpen, Request, Respond, TimeWait,
        };
        match self {
            Closed => &[Listen, Request],
            Listen => &[Closed, Respond],
            Request => &[PartOpen, Closed, TimeWait],
            Respond => &[Open, Closed, TimeWait],
            PartOpen => &[Open, Closing, Closed, TimeWait],
            Open => &[CloseReq, Closing, Closed, TimeWait],
            CloseReq => &[Closing, Closed, TimeWait],
            Closing => &[Closed, TimeWait],
            TimeWait => &[Closed],
        }
    }

    /// Whether there is a transition from this state to `next`.
    pub fn may_become(self, next: Self) -> bool {
        self.successors().contains(&next)
    }

    /// `self >= OPEN` in the RFC.
    pub(crate) const fn is_open_or_later(self) -> bool {
        matches!(self, Self::Open | Self::CloseReq | Self::Closing | Self::TimeWait)
    }

    /// `self < CLOSEREQ` in the RFC, for states that have a connection.
    pub(crate) const fn is_before_closereq(self) -> bool {
        matches!(self, Self::Request | Self::Respond | Self::PartOpen | Self::Open)
    }

    //= 4340-8.3-6
    /// Whether data and acknowledgements are exchanged. Data that arrives while a connection closes
    /// is accepted.
    pub(crate) const fn transfers(self) -> bool {
        matches!(self, Self::PartOpen | Self::Open | Self::CloseReq | Self::Closing)
    }

    /// Whether the application can still send.
    pub const fn is_sendable(self) -> bool {
        matches!(self, Self::Request | Self::Respond | Self::PartOpen | Self::Open)
    }

    /// Whether the connection has ended.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Closed | Self::TimeWait)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "CLOSED",
            Self::Listen => "LISTEN",
            Self::Request => "REQUEST",
            Self::Respond => "RESPOND",
            Self::PartOpen => "PARTOPEN",
            Self::Open => "OPEN",
            Self::CloseReq => "CLOSEREQ",
            Self::Closing => "CLOSING",
            Self::TimeWait => "TIMEWAIT",
        })
    }
}
