//! Congestion control plug-ins (RFC 4340 section 10).
//!
//! A DCCP connection is two half-connections, each under a CCID of its own. A CCID is a pair of
//! objects: the sender half ([`CcidSender`], lives where the data comes from) decides when data may
//! leave; the receiver half ([`CcidReceiver`], lives where it arrives) decides when feedback is
//! owed. The connection parses, validates and keeps acknowledgements; a CCID touches no packet
//! bytes except the options that it writes itself.
//!
//! How the connection drives them:
//!
//! * every packet that leaves: [`CcidSender::on_sent`]; if it carries an Ack Number and the Ack
//!   Vector, also [`CcidReceiver::write_options`] while it is built and
//!   [`CcidReceiver::on_feedback_sent`] after;
//! * every valid packet that arrives: [`CcidReceiver::on_packet`] and
//!   [`CcidSender::on_peer_packet`]; then, if it has an Ack Number, [`CcidSender::on_ack`]; of data
//!   that arrives together, [`CcidReceiver::on_run`] and [`CcidSender::on_peer_run`];
//! * at drain time: [`CcidReceiver::feedback`], then [`CcidSender::poll_send`] while there is data;
//! * timers: the earlier of the two `poll_timeout`s, then both `handle_timeout`s (early is
//!   harmless).

mod boxed;
pub mod ccid2;
pub mod ccid3;
pub mod ccid4;
pub mod experimental;
mod half;
mod probes;
mod receiver;
mod registry;
mod sender;
pub mod tfrc;

pub use boxed::{CloneReceiver, CloneSender};
pub use ccid2::Ccid2Config;
pub use ccid3::Ccid3Config;
pub use ccid4::Ccid4Config;
#[doc(hidden)]
pub use half::{ReceiverHalf, SenderHalf};
pub(crate) use half::{of_receiver, of_sender};
pub use receiver::{
    CcidReceiver, Feedback, OptionSink, ReceivedInfo, ReceivedRun, ReceiverMetrics,
};
pub use registry::{CcidFactory, CcidRegistry, CcidSetup, RegistryError};
pub(crate) use sender::LONGEST_RTT;
pub(crate) use sender::QUICK_START_HEADER_BYTES;
pub use sender::{
    AckInfo, AckOutcome, CcidMetrics, CcidSender, FeatureNeed, PacketReport, PeerDrops,
    QuickStartStep, SendVerdict, SentInfo, TimeoutOutcome,
};
