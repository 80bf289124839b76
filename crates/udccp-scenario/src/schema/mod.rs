//! A scenario as files describe it: topology, time and flows.

mod change;
pub mod choice;
mod dccp_options;
mod flow;
mod link;
mod loss;
mod quantity;
mod queue;
mod random_variable;
mod records;
mod scenario;
mod tcp_options;
mod topology;
mod trace;
mod traffic;
mod unused;

pub use change::LinkChange;
pub(crate) use change::of_link;
pub use dccp_options::{DccpOptions, DccpProfile, GrowthAfterCut, HostTimers, NatPlace};
pub use flow::{Direction, Flow};
pub use link::{Link, Propagation};
pub use quantity::{BDP_PACKET_BYTES, Limit, Packets, Percent, Service, StartWindow};
pub use scenario::{Measure, SCHEMA, Scenario, Time};
pub use tcp_options::{AckCounting, LossDetection, Reduction, TcpOptions, TcpProfile};
pub use topology::{Hop, Shape, Topology};
pub use traffic::{CodecName, RandomVariable, Silence, Trace, Traffic};
pub use unused::ignorable_options;
