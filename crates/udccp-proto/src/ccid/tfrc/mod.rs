//! TCP-Friendly Rate Control (RFC 5348): the parts that CCIDs 3 and 4 share.
//!
//! Sender side: `rate_control` (the allowed rate X), `x_recv_set`, `data_limited`, `pacer`,
//! `segment_size`, `sent_log`, `rtt_floor`, `small_packets` (the changes of RFC 4828) and
//! `window_counter`.
//! Receiver side: `loss_history` (from packets to loss events), `receive_rate`, `counter_rtt`.
//! Both: [`equation`] and `loss_average`.

mod counter_rtt;
mod data_limited;
pub mod equation;
mod loss_average;
mod loss_history;
mod pacer;
mod rate;
mod rate_control;
mod receive_rate;
mod rtt_floor;
mod segment_size;
mod sent_log;
mod small_packets;
#[cfg(test)]
mod tests;
mod window_counter;
mod x_recv_set;

pub(crate) use counter_rtt::{CounterRtt, distance as counter_distance};
pub(crate) use data_limited::DataLimited;
pub use loss_average::LossAverage;
pub(crate) use loss_history::{Arrived, LossHistory};
pub(crate) use pacer::{Pace, RatePacer};
pub use rate::Rate;
pub(crate) use rate_control::{LEAST_RTT, RateControl, Report};
pub(crate) use receive_rate::ReceiveRate;
pub(crate) use rtt_floor::RttFloor;
pub(crate) use segment_size::{Segment, SegmentSize};
pub(crate) use sent_log::{Sent, SentLog};
pub(crate) use small_packets::{MinInterval, SHORT_ROUNDS, SmallPackets};
pub(crate) use window_counter::WindowCounter;

//= 5348-5.4-1
//= 5348-5.4-2
/// Number of loss intervals in the average: n of RFC 5348 section 5.4, NINTERVAL of RFC 4342.
pub const NINTERVAL: usize = 8;

/// Later packets that must arrive before a missing one counts as lost (RFC 5348 section 5.1).
pub const NDUPACK: usize = 3;

/// Longest time between two packets, t_mbi, in seconds (RFC 5348 section 4.3).
pub const MAX_BACK_OFF_SECS: u64 = 64;
