//! RTP over DCCP (RFC 5762): media with congestion control.
//!
//! ```no_run
//! use std::time::Duration;
//! use udccp::Connection;
//! use udccp_rtp::{Event, RtpOptions, RtpSession, SERVICE_AUDIO};
//!
//! # async fn example() -> Result<(), udccp_rtp::Error> {
//! let connection = Connection::connect(([192, 0, 2, 1], 5004), SERVICE_AUDIO).await?;
//! // G.711 mu-law: payload type 0, 8000 samples a second, 20 ms a packet.
//! let options = RtpOptions::new(0, 8000).lifetime(Duration::from_millis(60));
//! let session = RtpSession::new(connection, &options)?;
//! for n in 0..500 {
//!     session.send(n * 160, n == 0, &[0xff; 160]).await?;
//!     tokio::time::sleep(Duration::from_millis(20)).await;
//! }
//! while let Some(event) = session.recv().await? {
//!     if let Event::Report(report) = event {
//!         println!("{report:?}");
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - [`RtpSession`]: sends payloads, receives packets in order of arrival, and sends RTCP by
//!   itself: reports at the times of RFC 3550, with loss and jitter of every source heard.
//! - [`sdp`]: the lines that describe such a session to others.
//! - [`partial_checksums`]: for payload formats that can use damaged data.
//!
//! DCCP controls congestion. A packet that has not left within its [`RtpOptions::lifetime`] is
//! dropped, so that the next one can be sent.

#![forbid(unsafe_code)]

mod error;
mod keep_alive;
mod receiver;
mod reports;
pub mod sdp;
mod session;
mod state;
mod timing;

pub use error::Error;
pub use reports::{Block, Event, Packet, Report, SenderInfo};
pub use session::{RtpOptions, RtpSession, partial_checksums};
pub use state::{SessionStats, SourceStats};
use udccp::ServiceCode;

//= 5762-5.1-6
/// Default port of RTP sessions (RFC 5762 section 5.1).
pub const RTP_PORT: u16 = 5004;
//= 5762-5.1-8
/// Default port of RTCP on a connection of its own.
pub const RTCP_PORT: u16 = 5005;

//= 5762-5.2-2
/// Service code of audio, `SC:RTPA` (RFC 5762 section 5.2).
pub const SERVICE_AUDIO: ServiceCode = ServiceCode(0x5254_5041);
/// Service code of video, `SC:RTPV`.
pub const SERVICE_VIDEO: ServiceCode = ServiceCode(0x5254_5056);
/// Service code of text, `SC:RTPT`.
pub const SERVICE_TEXT: ServiceCode = ServiceCode(0x5254_5054);
/// Service code of other media, `SC:RTPO`.
pub const SERVICE_OTHER: ServiceCode = ServiceCode(0x5254_504f);
/// Service code of RTCP on a connection of its own, `SC:RTCP`.
pub const SERVICE_RTCP: ServiceCode = ServiceCode(0x5254_4350);

/// Compiles the code of the README, so that it stays correct.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
