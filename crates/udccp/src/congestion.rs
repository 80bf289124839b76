//! Settings of the CCIDs.

use std::time::Duration;

use udccp_cc::{Algorithm, IdlePolicy, InitialWindow};
use udccp_proto::ccid::ccid2::{AckRatioConfig, Pacing, SlowStartGrowth};
use udccp_proto::ccid::ccid3::SegmentSizeRule;
use udccp_proto::ccid::{Ccid2Config, Ccid3Config, Ccid4Config};

/// The nofeedback timer of CCIDs 3 and 4 is not shorter, unless set otherwise. As in Linux: a
/// process may have to wait that long for its turn.
const LEAST_TIMEOUT: Duration = Duration::from_millis(100);

/// Writes setters of one type of settings.
macro_rules! setters {
    ($of:ident: $(
        $(#[$doc:meta])* $name:ident: $type:ty = $field:ident $(. $inner:ident)*, $value:expr;
    )*) => {
        impl $of {
            /// The default settings.
            pub fn new() -> Self {
                Self::default()
            }

            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(mut self, $name: $type) -> Self {
                    self.0.$field$(.$inner)* = $value;
                    self
                }
            )*
        }
    };
}

/// Full packets that one write of the system carries (64 KiB).
const TRAIN_PACKETS: u32 = 43;

/// Settings of CCID 2 (RFC 4341), for [`Options::ccid2`](crate::Options::ccid2).
///
/// ```
/// use udccp::ccid::{Algorithm, InitialWindow};
/// use udccp::{Ccid2Options, Options};
///
/// let ccid2 = Ccid2Options::new().initial_window(InitialWindow::Rfc6928).max_window(20_000);
/// let options = Options::new().ccid2(ccid2.algorithm(Algorithm::Cubic(Default::default())));
/// # drop(options);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Ccid2Options(pub(crate) Ccid2Config);

impl Default for Ccid2Options {
    fn default() -> Self {
        // Linux has no timer for acknowledgements, only a count: with a ratio of two and a window
        // of one, it would answer every second transmit timeout.
        let ack_ratio = AckRatioConfig::Adaptive { min: 1 };
        Self(Ccid2Config { ack_ratio, max_train: TRAIN_PACKETS, ..Ccid2Config::default() })
    }
}

setters! { Ccid2Options:
    /// The window algorithm (default NewReno, halving).
    algorithm: Algorithm = algorithm, algorithm;
    /// Growth in slow start (default RFC 4341's).
    slow_start: SlowStartGrowth = slow_start, slow_start;
    /// The first window (default RFC 3390).
    initial_window: InitialWindow = initial_window, initial_window;
    /// The window never exceeds this many packets (default 6144, or 8.8 MB of full packets: 700
    /// Mbit/s over 100 ms). Some 21 bytes of memory for each. BBR uses a quarter of it.
    max_window: u32 = max_window, max_window;
    /// What becomes of a window that was not used (default RFC 7661).
    idle: IdlePolicy = idle, idle;
    /// When packets are paced (default: while the window is not validated).
    pacing: Pacing = pacing, pacing;
    /// Packets that leave in one train at most, so that one call writes them (default 43, or 64 KiB
    /// of full packets; 1: each leaves as soon as it may).
    max_train: u32 = max_train, max_train;
    /// Congestion control on acknowledgements (default adaptive, at least 1).
    ack_ratio: AckRatioConfig = ack_ratio, ack_ratio;
    /// Longest time that an acknowledgement is delayed (default 200 ms, RFC 4340 section 11.3).
    delayed_ack: Duration = delayed_ack, delayed_ack.into();
    /// The transmit timeout before the first round-trip time is known (default 1 s).
    initial_rto: Duration = rto.initial, initial_rto.into();
    /// The smallest transmit timeout (default 200 ms).
    min_rto: Duration = rto.min, min_rto.into();
    /// The largest transmit timeout (default 60 s).
    max_rto: Duration = rto.max, max_rto.into();
}

/// Settings of CCID 3 (RFC 4342), for [`Options::ccid3`](crate::Options::ccid3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ccid3Options(pub(crate) Ccid3Config);

impl Default for Ccid3Options {
    fn default() -> Self {
        Self(Ccid3Config { least_timeout: LEAST_TIMEOUT.into(), ..Ccid3Config::default() })
    }
}

setters! { Ccid3Options:
    /// Lower the rate while the round-trip time is above its mean (default true, RFC 5348 section
    /// 4.5).
    oscillation_reduction: bool = oscillation_reduction, oscillation_reduction;
    /// Let old loss intervals count less during a long one (default true, RFC 5348 section 5.5).
    history_discounting: bool = history_discounting, history_discounting;
    /// Which segment size the throughput equation takes (default the mean).
    segment_size: SegmentSizeRule = segment_size, segment_size;
    /// How coarsely timers fire, t_gran (default 1 ms): a packet may leave up to half of it early
    /// (RFC 5348 section 8.3).
    granularity: Duration = granularity, granularity.into();
    /// For how long unused send times may be made up for, and never longer than a round-trip time
    /// (the default, RFC 5348 section 4.6).
    max_credit: Duration = max_credit, max_credit.into();
    /// The nofeedback timer is never shorter (default 100 ms). Where it is longer than four
    /// round-trip times for that reason, no more is in flight than leaves in these, or 100 packets.
    least_timeout: Duration = least_timeout, least_timeout.into();
    /// Take feedback that has a Loss Event Rate in place of Loss Intervals (default true): Linux
    /// sends no other.
    accept_loss_event_rate: bool = accept_loss_event_rate, accept_loss_event_rate;
}

/// Settings of CCID 4 (RFC 5622), for [`Options::ccid4`](crate::Options::ccid4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ccid4Options(pub(crate) Ccid4Config);

impl Default for Ccid4Options {
    fn default() -> Self {
        Self(Ccid4Config { tfrc: Ccid3Options::default().0, ..Ccid4Config::default() })
    }
}

setters! { Ccid4Options:
    /// What CCID 4 has in common with CCID 3. The segment size is none of it.
    tfrc: Ccid3Options = tfrc, tfrc.0;
    /// Bytes of headers that the allowed rate has to pay for with each packet (default 36, RFC 5622
    /// section 5; 32 with short sequence numbers).
    header_bytes: u32 = header_bytes, header_bytes;
}
