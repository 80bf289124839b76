//! Settings of the CCIDs.

use std::time::Duration;

use udccp_cc::{Algorithm, IdlePolicy, InitialWindow};
use udccp_proto::ccid::ccid2::{AckRatioConfig, Pacing, SlowStartGrowth};
use udccp_proto::ccid::ccid3::SegmentSizeRule;
use udccp_proto::ccid::{Ccid2Config, Ccid3Config, Ccid4Config};

/// Default of `min_nofeedback_timeout`, as in Linux: a process may wait that long for a processor.
const MIN_NOFEEDBACK_TIMEOUT: Duration = Duration::from_millis(100);

/// Writes the setters of one settings type.
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

/// Full packets in one write of the system (64 KiB).
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
        // Linux has no timer for acknowledgements, only a count: with a ratio of 2 and a window of
        // 1, it would answer only every second transmit timeout.
        let ack_ratio = AckRatioConfig::Adaptive { min: 1 };
        Self(Ccid2Config { ack_ratio, max_train: TRAIN_PACKETS, ..Ccid2Config::default() })
    }
}

setters! { Ccid2Options:
    /// The window algorithm (default NewReno, which halves the window).
    algorithm: Algorithm = algorithm, algorithm;
    /// How the window grows in slow start (default as in RFC 4341).
    slow_start: SlowStartGrowth = slow_start, slow_start;
    /// The initial window (default RFC 3390).
    initial_window: InitialWindow = initial_window, initial_window;
    /// Largest window in packets (default 6144, or 8.8 MB of full packets: 700 Mbit/s over 100 ms).
    /// Each packet takes about 21 bytes of memory. BBR uses a quarter of it.
    max_window: u32 = max_window, max_window;
    /// What happens to a window that the application does not use (default RFC 7661).
    idle: IdlePolicy = idle, idle;
    /// When packets are paced (default: while the window is not validated, RFC 7661).
    pacing: Pacing = pacing, pacing;
    /// Most packets in one burst, which one call writes (default 43, or 64 KiB of full packets).
    /// With 1, each packet leaves as soon as it may.
    max_train: u32 = max_train, max_train;
    /// Congestion control of acknowledgements (default: an adaptive Ack Ratio, at least 1; RFC 4341
    /// section 6.1).
    ack_ratio: AckRatioConfig = ack_ratio, ack_ratio;
    /// Longest delay of an acknowledgement (default 200 ms, RFC 4340 section 11.3).
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
        Self(Ccid3Config {
            min_nofeedback_timeout: MIN_NOFEEDBACK_TIMEOUT.into(),
            ..Ccid3Config::default()
        })
    }
}

setters! { Ccid3Options:
    /// Lower the rate while the round-trip time is above its mean (default true, RFC 5348 section
    /// 4.5).
    oscillation_reduction: bool = oscillation_reduction, oscillation_reduction;
    /// Reduce the weight of old loss intervals during a long one without loss (default true, RFC
    /// 5348 section 5.5).
    history_discounting: bool = history_discounting, history_discounting;
    /// The segment size in the throughput equation (default the mean).
    segment_size: SegmentSizeRule = segment_size, segment_size;
    /// Granularity of timers, t_gran (default 1 ms): a packet may leave up to half of it early (RFC
    /// 5348 section 8.3).
    granularity: Duration = granularity, granularity.into();
    /// How long missed send times may be made up for, never more than a round-trip time (the
    /// default, RFC 5348 section 4.6).
    max_credit: Duration = max_credit, max_credit.into();
    /// Shortest nofeedback timer (default 100 ms). If it exceeds four round-trip times for this
    /// reason, the data in flight is limited to what the rate sends in four round-trip times, or to
    /// 100 packets if that is more.
    min_nofeedback_timeout: Duration = min_nofeedback_timeout, min_nofeedback_timeout.into();
    /// Accept feedback with a Loss Event Rate instead of Loss Intervals (default true). Linux sends
    /// no other.
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
    /// The settings that CCID 4 shares with CCID 3. `segment_size` has no effect.
    tfrc: Ccid3Options = tfrc, tfrc.0;
    /// Bytes of headers that count against the allowed rate with each packet (default 36, RFC 5622
    /// section 5; 32 with short sequence numbers).
    header_bytes: u32 = header_bytes, header_bytes;
}
