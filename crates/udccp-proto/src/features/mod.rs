//! Feature negotiation (RFC 4340 section 6): one negotiator per connection.
//!
//! The negotiator handles options only, and knows which packet each comes with or leaves with. Use:
//!
//! 1. [`Negotiator::begin_packet`] for every valid packet that is not a DCCP-Data, then
//!    [`Negotiator::on_option`] for each of its options in order. An error means: reset the
//!    connection with the code and data that the error carries.
//! 2. [`Negotiator::poll_activated`] until `None`: what took a new value.
//! 3. When a packet leaves, [`Negotiator::write_options`] once for it. When none is leaving and
//!    [`Negotiator::take_packet_request`] says so, make a DCCP-Ack for the options alone.
//! 4. [`Negotiator::poll_timeout`]: when to ask `take_packet_request` again.

mod entry;
mod error;
mod list;
mod negotiator;
mod output;
mod preferences;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use error::{ChangeError, FeatureError};
pub use negotiator::{Activated, Negotiator, PacketContext, Phase};
pub use preferences::{FeaturePreferences, Preference};

/// Which side of the connection we are. The server's preferences decide (RFC 4340 section 6.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The side that sends the Request.
    Client,
    /// The side that sends the Response.
    Server,
}

/// Where a feature is located, as seen from our side. Feature F at A governs something that A does
/// (or reads, for ECN Incapable and Minimum Checksum Coverage): see the section of each feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// At us: we send Change L and Confirm L.
    Local,
    /// At the peer: we send Change R and Confirm R.
    Remote,
}
