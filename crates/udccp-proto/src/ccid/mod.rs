//! Congestion control plug-ins (RFC 4340 section 10).
//!
//! A DCCP connection consists of two half-connections, each with a CCID of its own. A CCID is a
//! pair of objects. The sender half ([`CcidSender`], where the data comes from) decides when data
//! may be sent. The receiver half ([`CcidReceiver`], where the data arrives) decides when an
//! acknowledgement is due. The connection parses, validates and stores acknowledgements; a CCID
//! handles no packet bytes except the options that it writes itself.
//!
//! The connection calls them as follows:
//!
//! * every packet sent: [`CcidSender::on_sent`]; if it carries an Ack Number and the Ack Vector,
//!   also [`CcidReceiver::write_options`] while it is built and [`CcidReceiver::on_feedback_sent`]
//!   afterwards;
//! * every valid packet received: [`CcidReceiver::on_packet`] and [`CcidSender::on_peer_packet`];
//!   then, if it has an Ack Number, [`CcidSender::on_ack`]; for data that arrived together,
//!   [`CcidReceiver::on_run`] and [`CcidSender::on_peer_run`];
//! * when drained: [`CcidReceiver::feedback`], then [`CcidSender::poll_send`] while there is data;
//! * timers: at the earlier of the two `poll_timeout`s, both `handle_timeout`s (early calls are
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
pub use half::{OtherSender, ReceiverHalf, SenderHalf, TfrcReceiver};
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
