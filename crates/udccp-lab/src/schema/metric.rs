//! Metrics that a table or figure can show of a run.

use super::choice::words;
use super::close::Close;

words! {
    /// A metric of a table. Definitions are in `udccp-metrics` and `docs/reference/metrics.md`.
    Metric, "metric":
    /// Mean over time of Jain's index of the flows' rates.
    Jain = "jain",
    /// Jain's index of the flows' mean rates.
    JainOfMeans = "jain-of-means",
    /// The smallest mean goodput relative to an equal share.
    MaxMin = "max-min",
    /// How far the smallest mean goodput is below the largest.
    Epsilon = "epsilon",
    /// Sum of the logarithms of the mean goodputs: what proportional fairness maximises.
    LogUtility = "log-utility",
    /// Mean throughput of a group of flows divided by an equal share.
    Normalised = "normalised",
    /// The same for the group's slowest flow.
    NormalisedLeast = "normalised-least",
    /// The same for the group's fastest flow.
    NormalisedMost = "normalised-most",
    /// Wire rate (IP bytes) delivered to the receiver.
    Throughput = "throughput",
    /// Payload rate delivered to the receiving application.
    Goodput = "goodput",
    /// A flow's rate as a share of the rates of all flows.
    Share = "share",
    /// Wire rate of the data direction over the first link between routers.
    RouterThroughput = "router-throughput",
    /// The same plus the acknowledgements.
    RouterBothWays = "router-both-ways",
    /// Payload delivered as a share of all bytes sent.
    GoodputRatio = "goodput-ratio",
    /// Coefficient of variation of the throughputs of the intervals.
    Smoothness = "smoothness",
    /// Packets sent and not delivered.
    Loss = "loss",
    /// Packets lost as a share of the data packets of all flows on all links.
    LossOnAllLinks = "loss-on-all-links",
    /// Congestion events of the sender as a share of packets sent.
    LossEvents = "loss-events",
    /// Packets sent relative to what the throughput equation allows for the packet loss.
    EquationRatio = "equation-ratio",
    /// The same for the loss event rate.
    EquationRatioOfEvents = "equation-ratio-of-events",
    /// Mean one-way delay.
    Delay = "delay",
    /// Mean one-way delay of data and acknowledgements.
    DelayBothWays = "delay-both-ways",
    /// 95th percentile of the one-way delay.
    DelayP95 = "delay-p95",
    /// 99th percentile of the one-way delay.
    DelayP99 = "delay-p99",
    /// Jitter of RFC 3550.
    Jitter = "jitter",
    /// Mean change of the transit time from packet to packet.
    JitterTransit = "jitter-transit",
    /// Mean change of the gap between arrivals.
    JitterArrivalGap = "jitter-arrival-gap",
    /// Mean change of the transit time between packets, divided by the difference of their numbers
    /// in ns-2.
    JitterPerNumber = "jitter-per-number",
    /// Utilisation of the bottleneck.
    Utilisation = "utilisation",
    /// Median of the queueing delay at the bottleneck.
    QueueDelayP50 = "queue-delay-p50",
    /// 95th percentile of the queueing delay at the bottleneck.
    QueueDelay = "queue-delay-p95",
    /// 99th percentile of the queueing delay at the bottleneck.
    QueueDelayP99 = "queue-delay-p99",
    /// Normalised Resource Usage of a flow.
    Nru = "nru",
    /// Normalised Resource Usage of a flow's mean rate.
    NruOfMean = "nru-of-mean",
    /// Mean usage of the flows that have their fair share or more.
    NruFair = "nru-fair",
    /// Mean usage of the flows that have less than their fair share.
    NruUnfair = "nru-unfair",
    /// Mean usage of all flows.
    NruMean = "nru-mean",
    /// Mean stability of the flows' usages.
    NruStability = "nru-stability",
    /// The fair side of the flows' mean rates.
    NruFairOfMeans = "nru-fair-of-means",
    /// The unfair side of the flows' mean rates.
    NruUnfairOfMeans = "nru-unfair-of-means",
    /// Coefficient of variation of the flows' NRU of mean rates.
    NruVariationOfMeans = "nru-variation-of-means",
    /// Time from the epoch until all flows have their fair share for the first time.
    Convergence = "convergence",
    /// Time from the epoch until all flows have their fair share permanently.
    Settling = "settling",
    /// Share of its goodput alone that a flow loses next to others.
    Harm = "harm",
    /// Time from a change until a flow is first back at a share of its previous rate.
    Recovery = "recovery-time",
}

/// The kind of quantity of a metric.
enum Kind {
    Index,
    Rate,
    Percent,
    Time,
    Decibels,
    Seconds,
}

impl Metric {
    const fn kind(self) -> Kind {
        match self {
            Self::Jain
            | Self::JainOfMeans
            | Self::MaxMin
            | Self::Epsilon
            | Self::LogUtility
            | Self::Normalised
            | Self::NormalisedLeast
            | Self::NormalisedMost
            | Self::Smoothness
            | Self::EquationRatio
            | Self::EquationRatioOfEvents
            | Self::NruStability
            | Self::NruVariationOfMeans
            | Self::Harm => Kind::Index,
            Self::Throughput | Self::Goodput | Self::RouterThroughput | Self::RouterBothWays => {
                Kind::Rate
            }
            Self::Loss
            | Self::LossOnAllLinks
            | Self::LossEvents
            | Self::Utilisation
            | Self::GoodputRatio
            | Self::Share => Kind::Percent,
            Self::Delay
            | Self::DelayBothWays
            | Self::DelayP95
            | Self::DelayP99
            | Self::Jitter
            | Self::JitterTransit
            | Self::JitterArrivalGap
            | Self::JitterPerNumber
            | Self::QueueDelayP50
            | Self::QueueDelay
            | Self::QueueDelayP99 => Kind::Time,
            Self::Nru
            | Self::NruOfMean
            | Self::NruFair
            | Self::NruUnfair
            | Self::NruMean
            | Self::NruFairOfMeans
            | Self::NruUnfairOfMeans => Kind::Decibels,
            Self::Convergence | Self::Settling | Self::Recovery => Kind::Seconds,
        }
    }

    /// The unit; empty for a plain number.
    pub const fn unit(self) -> &'static str {
        match self.kind() {
            Kind::Index => "",
            Kind::Rate => "Mbit/s",
            Kind::Percent => "%",
            Kind::Time => "ms",
            Kind::Decibels => "dB",
            Kind::Seconds => "s",
        }
    }

    /// The name in a heading.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Jain => "Jain fairness index",
            Self::JainOfMeans => "Jain fairness index of mean rates",
            Self::MaxMin => "Lowest goodput relative to an equal share",
            Self::Epsilon => "Epsilon of epsilon-fairness",
            Self::LogUtility => "Sum of logarithms of goodput",
            Self::Normalised => "Normalised throughput",
            Self::NormalisedLeast => "Normalised throughput of the slowest flow",
            Self::NormalisedMost => "Normalised throughput of the fastest flow",
            Self::Throughput => "Throughput",
            Self::Goodput => "Goodput",
            Self::Share => "Share of all flows' rates",
            Self::RouterThroughput => "Throughput between routers",
            Self::RouterBothWays => "Throughput between routers, data and acknowledgements",
            Self::GoodputRatio => "Goodput ratio",
            Self::Smoothness => "Variation of the bit rate",
            Self::Loss => "Packet loss",
            Self::LossOnAllLinks => "Loss, of all packets on all links",
            Self::LossEvents => "Loss event rate",
            Self::EquationRatio => "Rate relative to the equation at the packet loss rate",
            Self::EquationRatioOfEvents => "Rate relative to the equation at the loss event rate",
            Self::Delay => "One-way delay",
            Self::DelayBothWays => "One-way delay, data and acknowledgements",
            Self::DelayP95 => "One-way delay, 95th percentile",
            Self::DelayP99 => "One-way delay, 99th percentile",
            Self::Jitter => "Jitter (RFC 3550)",
            Self::JitterTransit => "Change of transit time, mean",
            Self::JitterArrivalGap => "Jitter by arrival gaps",
            Self::JitterPerNumber => "Jitter per packet number",
            Self::Utilisation => "Bottleneck utilisation",
            Self::QueueDelayP50 => "Queueing delay, median",
            Self::QueueDelay => "Queueing delay, 95th percentile",
            Self::QueueDelayP99 => "Queueing delay, 99th percentile",
            Self::Nru => "Normalised resource usage of a flow",
            Self::NruOfMean => "Normalised resource usage of the mean rate",
            Self::NruFair => "Fair system NRU",
            Self::NruUnfair => "Unfair system NRU",
            Self::NruMean => "Mean NRU of the flows",
            Self::NruStability => "System stability",
            Self::NruFairOfMeans => "Fair system NRU of mean rates",
            Self::NruUnfairOfMeans => "Unfair system NRU of mean rates",
            Self::NruVariationOfMeans => "Variation of the flows' NRU of mean rates",
            Self::Convergence => "Convergence time",
            Self::Settling => "Settling time",
            Self::Harm => "Harm to goodput",
            Self::Recovery => "Recovery time",
        }
    }

    /// Whether each flow has its own value.
    pub const fn is_per_flow(self) -> bool {
        matches!(
            self,
            Self::Throughput
                | Self::Goodput
                | Self::Share
                | Self::RouterThroughput
                | Self::RouterBothWays
                | Self::GoodputRatio
                | Self::Smoothness
                | Self::Loss
                | Self::LossOnAllLinks
                | Self::LossEvents
                | Self::EquationRatio
                | Self::EquationRatioOfEvents
                | Self::Delay
                | Self::DelayBothWays
                | Self::DelayP95
                | Self::DelayP99
                | Self::Jitter
                | Self::JitterTransit
                | Self::JitterArrivalGap
                | Self::JitterPerNumber
                | Self::Nru
                | Self::NruOfMean
                | Self::Harm
                | Self::Recovery
        )
    }

    /// Whether, if one flow fills the link, it only shows how full the link is.
    pub const fn is_of_one_link(self) -> bool {
        matches!(
            self,
            Self::Throughput
                | Self::Goodput
                | Self::RouterThroughput
                | Self::RouterBothWays
                | Self::Utilisation
        )
    }

    /// Whether it can cover a part of a run: `from` and `to`.
    pub const fn has_stretches(self) -> bool {
        matches!(self, Self::Jain | Self::Throughput | Self::Goodput | Self::Share | Self::Recovery)
    }

    /// Whether it needs a group of flows: `group`.
    pub const fn needs_group(self) -> bool {
        matches!(self, Self::Normalised | Self::NormalisedLeast | Self::NormalisedMost)
    }

    /// Whether it compares a flow with runs of another case, which the table names (`weights`).
    pub const fn needs_weights(self) -> bool {
        matches!(
            self,
            Self::Nru
                | Self::NruOfMean
                | Self::NruFair
                | Self::NruUnfair
                | Self::NruMean
                | Self::NruStability
                | Self::NruFairOfMeans
                | Self::NruUnfairOfMeans
                | Self::NruVariationOfMeans
                | Self::Convergence
                | Self::Settling
                | Self::Harm
        )
    }

    /// Whether it depends on weights and on nothing of a run but its flows' mean rates.
    pub const fn is_of_mean_rates(self) -> bool {
        matches!(
            self,
            Self::NruOfMean
                | Self::NruFairOfMeans
                | Self::NruUnfairOfMeans
                | Self::NruVariationOfMeans
        )
    }

    /// Number of decimals in a table.
    pub const fn digits(self) -> usize {
        match self {
            Self::LossEvents => 3,
            Self::Loss => 2,
            _ => match self.kind() {
                Kind::Index | Kind::Decibels => 2,
                // Half a second matters too: intervals may be that short, and means lie between.
                Kind::Rate | Kind::Percent | Kind::Time | Kind::Seconds => 1,
            },
        }
    }

    /// The possible values in a run with this many flows, in its own unit: minimum, maximum.
    pub fn bounds(self, flows: usize) -> (f64, f64) {
        let all = flows.max(1) as f64;
        match self {
            Self::Jain | Self::JainOfMeans => (1.0 / all, 1.0),
            Self::MaxMin | Self::Epsilon => (0.0, 1.0),
            Self::Normalised | Self::NormalisedLeast | Self::NormalisedMost => (0.0, all),
            // Relative to the flow's goodput alone: below 0 if it does better next to others.
            Self::Harm => (f64::NEG_INFINITY, 1.0),
            Self::LogUtility | Self::Nru | Self::NruOfMean | Self::NruMean => {
                (f64::NEG_INFINITY, f64::INFINITY)
            }
            Self::NruUnfair | Self::NruUnfairOfMeans => (f64::NEG_INFINITY, 0.0),
            _ => match self.kind() {
                Kind::Percent => (0.0, 100.0),
                _ => (0.0, f64::INFINITY),
            },
        }
    }

    /// The default distance from the published value that counts as agreement.
    pub const fn default_close(self) -> Close {
        match self {
            Self::NruStability | Self::NruVariationOfMeans => Close::Within(0.5),
            Self::Loss | Self::LossOnAllLinks | Self::LossEvents => Close::Within(0.1),
            _ => match self.kind() {
                Kind::Index => Close::Within(0.05),
                Kind::Decibels => Close::Within(0.5),
                // Paths differ too much in rate and delay for an absolute distance.
                Kind::Rate | Kind::Time => Close::Part(0.05),
                Kind::Percent => Close::Within(5.0),
                Kind::Seconds => Close::Within(15.0),
            },
        }
    }
}

words! {
    /// The rates from which a fairness index is computed.
    Rates, "kind of rate":
    /// IP bytes.
    Throughput = "throughput",
    /// Payload bytes.
    Goodput = "goodput",
}

#[cfg(test)]
mod tests {
    use super::Metric;

    /// The mean of 1, 3, 3 and 3 s printed as 2 s.
    #[test]
    fn times_in_seconds_have_a_digit_after_the_point() {
        for metric in [Metric::Convergence, Metric::Settling, Metric::Recovery] {
            assert_eq!(metric.digits(), 1, "{}", metric.word());
        }
    }
}
