//! Feature negotiation (RFC 4340 section 6): one negotiator per connection.
//!
//! The negotiator handles only options, and knows the packet that each arrives or leaves on. Use:
//!
//! 1. [`Negotiator::begin_packet`] for every valid packet that is not a DCCP-Data, then
//!    [`Negotiator::on_option`] for each of its options in order. On an error, reset the connection
//!    with the code and data in the error. [`Negotiator::note_gsr`] alone is enough for a packet
//!    without feature options.
//! 2. [`Negotiator::poll_activated`] until `None`: the features that have a new value.
//! 3. [`Negotiator::write_options`] once for each packet that is sent. If none is being sent and
//!    [`Negotiator::take_packet_request`] returns true, send a DCCP-Ack for the options alone.
//! 4. [`Negotiator::poll_timeout`]: when to call `take_packet_request` again.

mod entry;
mod error;
mod list;
mod negotiator;
mod output;
mod preferences;
mod slots;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use error::{ChangeError, FeatureError};
pub use negotiator::{Activated, Negotiator, PacketContext, Phase};
pub use preferences::{FeaturePreferences, Preference};

/// Our side of the connection. The server's preferences decide (RFC 4340 section 6.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The side that sends the Request.
    Client,
    /// The side that sends the Response.
    Server,
}

/// The location of a feature, seen from our side. Feature F at A controls what A does (or what A
/// reads, for ECN Incapable and Minimum Checksum Coverage): see the section of each feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// At us: we send Change L and Confirm L.
    Local,
    /// At the peer: we send Change R and Confirm R.
    Remote,
}
