//! Errors of RTP sessions and session descriptions, and what to do about each.

use std::sync::Arc;

/// An error of an RTP session. Its text says what happened; [`Error::advice`] says what to do.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The payload type has more than 7 bits, or looks like RTCP.
    #[error("payload type {0} cannot be used here")]
    PayloadType(u8),
    /// The clock rate is zero.
    #[error("the RTP clock needs a rate above zero")]
    ClockRate,
    /// The payload does not fit in one packet of this path.
    #[error("a payload of {len} bytes exceeds the maximum of {max} bytes for this path")]
    PayloadTooLarge {
        /// Bytes offered.
        len: usize,
        /// Bytes that fit.
        max: usize,
    },
    /// Partial checksums cannot be used with authentication.
    #[error("partial checksums cannot be used with the profile {0}")]
    PartialChecksum(crate::sdp::Profile),
    /// A session description is invalid.
    #[error(transparent)]
    Sdp(#[from] SdpError),
    /// The system provides no random numbers.
    #[error("no random numbers: {0}")]
    Random(String),
    /// The DCCP connection failed.
    #[error(transparent)]
    Dccp(Arc<udccp::Error>),
}

impl Error {
    /// What to do about it, in one sentence for a user.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::PayloadType(_) => "use 0 to 63 or 96 to 127 (RFC 5761 section 4)",
            Self::ClockRate => "give the sampling rate of the payload format",
            Self::PayloadTooLarge { .. } => "split the frame as its payload format describes",
            Self::PartialChecksum(_) => "use full checksums, or a profile without authentication",
            Self::Sdp(_) => "change the line that the message names",
            Self::Random(_) => "see the system's error",
            Self::Dccp(below) => below.advice(),
        }
    }
}

impl From<udccp::Error> for Error {
    fn from(e: udccp::Error) -> Self {
        Self::Dccp(Arc::new(e))
    }
}

/// What is wrong with a session description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SdpError {
    /// There is no `m=` line for DCCP.
    #[error("no m= line has a DCCP protocol")]
    NoMedia,
    /// The protocol is not RTP over DCCP.
    #[error("protocol {0}: RTP over DCCP is one of DCCP/RTP/AVP, SAVP, AVPF and SAVPF")]
    Protocol(String),
    /// The `m=` line names no payload type.
    #[error("the m= line names no payload type")]
    NoFormat,
    /// A dynamic payload type has no `a=rtpmap` line.
    #[error("payload type {0} is dynamic and needs an a=rtpmap line")]
    NoMap(u8),
    /// A line is invalid.
    #[error("cannot read the line \"{0}\"")]
    Line(String),
}
