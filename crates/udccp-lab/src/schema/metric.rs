//! What a table or figure shows of a run.

use super::choice::words;

words! {
    /// What a table shows. Definitions are in `udccp-metrics`.
    Metric, "metric":
    /// Mean over time of Jain's index of the flows' rates.
    Jain = "jain",
    /// Jain's index of the flows' mean rates.
    JainOfMeans = "jain-of-means",
    /// Wire rate (IP bytes) delivered to the receiver.
    Throughput = "throughput",
    /// Payload rate delivered to the receiving application.
    Goodput = "goodput",
    /// Packets sent and not delivered.
    Loss = "loss",
    /// Mean one-way delay.
    Delay = "delay",
    /// Jitter of RFC 3550.
    Jitter = "jitter",
    /// Part of the bottleneck that is filled.
    Utilisation = "utilisation",
    /// 95th percentile of the queueing delay at the bottleneck.
    QueueDelay = "queue-delay-p95",
}

impl Metric {
    /// The unit in words, empty for a bare number.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Jain | Self::JainOfMeans => "",
            Self::Throughput | Self::Goodput => "Mbit/s",
            Self::Loss | Self::Utilisation => "%",
            Self::Delay | Self::Jitter | Self::QueueDelay => "ms",
        }
    }

    /// The name in a heading.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Jain => "Jain fairness index",
            Self::JainOfMeans => "Jain fairness index of mean rates",
            Self::Throughput => "Throughput",
            Self::Goodput => "Goodput",
            Self::Loss => "Packet loss",
            Self::Delay => "One-way delay",
            Self::Jitter => "Jitter (RFC 3550)",
            Self::Utilisation => "Bottleneck utilisation",
            Self::QueueDelay => "Queueing delay, 95th percentile",
        }
    }

    /// Whether each flow has its own value.
    pub const fn is_per_flow(self) -> bool {
        matches!(self, Self::Throughput | Self::Goodput | Self::Loss | Self::Delay | Self::Jitter)
    }

    /// Digits after the point in a table.
    pub const fn digits(self) -> usize {
        match self {
            Self::Jain | Self::JainOfMeans | Self::Loss => 2,
            _ => 1,
        }
    }

    /// How far from the published value still counts as agreement, where a file does not say.
    pub const fn default_close(self) -> f64 {
        match self {
            Self::Jain | Self::JainOfMeans => 0.05,
            _ => 5.0,
        }
    }
}

words! {
    /// Which rates a fairness index is computed from.
    Rates, "kind of rate":
    /// IP bytes.
    Throughput = "throughput",
    /// Payload bytes.
    Goodput = "goodput",
}
