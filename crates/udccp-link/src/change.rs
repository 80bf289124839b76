//! Changes of a link.

use udccp_base::{DataRate, Duration};

use crate::loss::LossConfig;

/// A change of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A new rate, which also applies to the packet in transmission. At rate zero everything waits.
    Rate(DataRate),
    /// A new propagation delay, for packets that have not left the transmitter. Packets stay in
    /// order.
    Delay(Duration),
    /// A new loss model, in its initial state.
    Loss(LossConfig),
    /// The link goes down (`true`) or up (`false`). As with a Linux interface that is set down, the
    /// queue and the packet in transmission are dropped, and so are packets that arrive until the
    /// link is up again. Packets that have left the transmitter still arrive.
    Down(bool),
}
