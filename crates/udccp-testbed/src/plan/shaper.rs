//! One direction of a link, as Linux traffic control.
//!
//! A packet passes netem (loss, copies, delay, corruption), then a token bucket that holds one
//! packet (the rate), then the queue. netem comes first because its delay then does not count
//! against the queue's limit; on a path of fixed delay, the order only affects when a packet
//! reaches the queue. Variable delay and reordering must come after the queue, which would smooth
//! them out: they use netem on a separate device (`ifb`) at the far end.

use core::fmt::Write as _;

use udccp_base::{DataRate, Duration};
use udccp_link::{
    Change, CoDelConfig, Gather, GilbertElliott, LinkConfig, LossConfig, PieConfig, QueueConfig,
    QueueLimit, RedConfig, RedUnit, Variation,
};

/// A limit in packets that is never reached.
const UNLIMITED: u64 = 1_000_000;
/// Corrects for the Ethernet header that Linux counts; a scenario's links count IP bytes.
const STAB: &str = "stab overhead -14 linklayer ethernet";
/// A rate so high that a packet's transmission time is negligible: netem keeps packets in order
/// only if it has a rate.
const KEEP_ORDER: &str = "rate 400gbit";

/// How late a kernel may wake up on a real clock; it then catches up in a burst.
const LATENESS_MS: u64 = 2;

/// What traffic control cannot do, each as a clause.
pub(super) type Gaps = Vec<String>;

/// The state of one direction of a link on its device.
#[derive(Clone, Debug)]
pub(super) struct Shaper {
    config: LinkConfig,
    rate: DataRate,
    /// Size of the largest packet in IP bytes.
    largest: u64,
    /// Whether netem is needed at any time; it is then present from the start.
    netem: bool,
    /// Whether the delay is applied at the far end.
    shapes_ingress: bool,
    keeps_order: bool,
    is_down: bool,
    real_time: bool,
}

/// The end of a link to which a `tc` line applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Near,
    Far,
}

impl Shaper {
    /// Creates the shaper of a link for packets of up to `largest` bytes.
    pub(super) fn new(config: &LinkConfig, largest: u64, real_time: bool) -> Result<Self, Gaps> {
        let mut gaps = Gaps::new();
        if config.trace.is_some() {
            gaps.push("a link that follows a trace".into());
        }
        if config.mtu.is_some() {
            gaps.push("a link with an MTU of its own (its router would send ICMP messages)".into());
        }
        if config.gather != Gather::default() {
            gaps.push("packets that arrive together (delay_tick, interrupt_moderation)".into());
        }
        if matches!(config.variation, Variation::Trace(_)) {
            gaps.push("a delay that follows a record".into());
        }
        if config.reorder.is_some_and(|r| r.by.is_some()) {
            gaps.push("reordering by a delay of its own (netem lets packets jump ahead)".into());
        }
        let rate = config.rate.unwrap_or(DataRate::from_mbps(100_000));
        let changed = config.changes.iter().map(|(_, change)| change);
        let rates = changed.clone().filter_map(|change| match change {
            Change::Rate(rate) => Some(*rate),
            _ => None,
        });
        if core::iter::once(rate).chain(rates).any(|rate| rate.bits_per_sec() < 8_000) {
            gaps.push("a rate below 8 kbit/s".into());
        }
        let losses = changed.clone().filter_map(|change| match change {
            Change::Loss(loss) => Some(loss),
            _ => None,
        });
        for loss in core::iter::once(&config.loss).chain(losses) {
            if loss_words(loss).is_none() {
                gaps.push("loss by a period or a record (netem has only random loss)".into());
            }
        }
        queue_gaps(config, &mut gaps);
        if !gaps.is_empty() {
            return Err(gaps);
        }
        let moves = |change: &Change| !matches!(change, Change::Rate(_));
        let delays = changed.clone().any(|change| matches!(change, Change::Delay(_)));
        let shapes_ingress = config.variation != Variation::None || config.reorder.is_some();
        let netem = (!config.delay.is_zero() && !shapes_ingress)
            || config.loss != LossConfig::None
            || config.duplicate > 0.0
            || config.corrupt > 0.0
            || changed.clone().any(moves);
        let keeps_order = (config.variation != Variation::None || delays) && !config.free_order;
        let config = LinkConfig { changes: Vec::new(), ..config.clone() };
        Ok(Self {
            config,
            rate,
            largest,
            netem,
            shapes_ingress,
            keeps_order,
            is_down: false,
            real_time,
        })
    }

    /// Whether the far end shapes packets.
    pub(super) const fn shapes_ingress(&self) -> bool {
        self.shapes_ingress
    }

    /// Lines for `tc -batch` that set up the near end.
    pub(super) fn lines(&self, device: &str) -> Vec<String> {
        let mut lines = Vec::new();
        if self.netem {
            lines.push(format!("qdisc add dev {device} root handle 1: {STAB} {}", self.netem()));
        }
        lines.push(format!("qdisc add dev {device} {} {}", self.place(), self.bucket()));
        lines.push(format!("qdisc add dev {device} parent 2:1 handle 3: {}", self.queue()));
        lines
    }

    /// `tc` lines for the far end that redirect everything received on `device` through `ifb`.
    pub(super) fn ingress_lines(&self, device: &str, ifb: &str) -> Vec<String> {
        vec![
            format!("qdisc add dev {ifb} root handle 1: {}", self.ingress_netem()),
            format!("qdisc add dev {device} handle ffff: ingress"),
            format!(
                "filter add dev {device} parent ffff: protocol all matchall action mirred egress \
                 redirect dev {ifb}"
            ),
        ]
    }

    /// `tc` lines that change the link, each with its end.
    pub(super) fn change(
        &mut self,
        device: &str,
        ifb: &str,
        change: &Change,
    ) -> Vec<(Side, String)> {
        match change {
            Change::Rate(rate) => self.rate = *rate,
            Change::Delay(delay) => self.config.delay = *delay,
            Change::Loss(loss) => self.config.loss = loss.clone(),
            Change::Down(down) => self.is_down = *down,
        }
        let near = |line: String| (Side::Near, format!("qdisc {line}"));
        if matches!(change, Change::Rate(_)) {
            return vec![near(format!("change dev {device} {} {}", self.place(), self.bucket()))];
        }
        if matches!(change, Change::Delay(_)) && self.shapes_ingress {
            let line = format!("qdisc change dev {ifb} root handle 1: {}", self.ingress_netem());
            return vec![(Side::Far, line)];
        }
        let netem = self.netem();
        let mut lines = vec![near(format!("change dev {device} root handle 1: {STAB} {netem}"))];
        if matches!(change, Change::Down(true)) {
            // Replacing a queue drops its packets.
            lines.push(near(format!("del dev {device} parent 2:1 handle 3:")));
            lines.push(near(format!("add dev {device} parent 2:1 handle 3: {}", self.queue())));
        }
        lines
    }

    fn place(&self) -> String {
        if self.netem { "parent 1:1 handle 2:".into() } else { format!("root handle 2: {STAB}") }
    }

    fn netem(&self) -> String {
        let config = &self.config;
        let delay = if self.shapes_ingress { Duration::ZERO } else { config.delay };
        let mut out = format!("netem limit {UNLIMITED} delay {}", micros(delay));
        let down = LossConfig::Random(1.0);
        let loss = if self.is_down { &down } else { &config.loss };
        out.push_str(&loss_words(loss).unwrap_or_default());
        if config.duplicate > 0.0 {
            let _ = write!(out, " duplicate {}", percent(config.duplicate));
        }
        if config.corrupt > 0.0 {
            let _ = write!(out, " corrupt {}", percent(config.corrupt));
        }
        if self.keeps_order && !self.shapes_ingress {
            let _ = write!(out, " {KEEP_ORDER}");
        }
        out
    }

    fn ingress_netem(&self) -> String {
        let config = &self.config;
        let mut out = format!("netem limit {UNLIMITED}");
        match config.variation {
            Variation::Uniform(below) => {
                // netem's distribution is uniform around the mean.
                let half = below / 2;
                let _ = write!(out, " delay {} {}", micros(config.delay + half), micros(half));
            }
            Variation::Normal(deviation) => {
                let (delay, deviation) = (micros(config.delay), micros(deviation));
                let _ = write!(out, " delay {delay} {deviation} distribution normal");
            }
            _ => {
                let _ = write!(out, " delay {}", micros(config.delay));
            }
        }
        if let Some(reorder) = config.reorder {
            let _ = write!(out, " reorder {} gap {}", percent(reorder.probability), reorder.gap);
        }
        if self.keeps_order && config.reorder.is_none() {
            let _ = write!(out, " {KEEP_ORDER}");
        }
        out
    }

    /// A bucket of one packet: each packet leaves when the previous one would have been
    /// transmitted. It has room for the Ethernet header, which counts if a packet is split from a
    /// larger one. On a real clock it also holds what is sent while the kernel wakes up late;
    /// otherwise that service would be lost. The limit is that of the queue below, in the same
    /// units.
    fn bucket(&self) -> String {
        let rate = self.rate.bits_per_sec();
        let limit = match (self.config.queue, self.config.limit) {
            (QueueConfig::DropTail, QueueLimit::Packets(n)) => u64::from(n),
            (QueueConfig::DropTail, QueueLimit::Bytes(n)) => n,
            _ => UNLIMITED,
        };
        let packet = self.config.token_bucket.map_or(self.largest + 14, u64::from);
        let burst = if self.real_time { packet + rate / 8 * LATENESS_MS / 1_000 } else { packet };
        format!("tbf rate {rate}bit burst {burst} limit {}", limit.max(1))
    }

    fn queue(&self) -> String {
        let limit = self.config.limit;
        let packets = match limit {
            QueueLimit::Unlimited => UNLIMITED,
            QueueLimit::Packets(n) => u64::from(n).max(1),
            QueueLimit::Bytes(n) => (n / self.largest).max(1),
        };
        match self.config.queue {
            QueueConfig::DropTail => match limit {
                QueueLimit::Bytes(n) => format!("bfifo limit {n}"),
                _ => format!("pfifo limit {packets}"),
            },
            QueueConfig::DropHead => format!("pfifo_head_drop limit {packets}"),
            QueueConfig::Red(red) => self.red(&red),
            QueueConfig::CoDel(codel) => format!("codel limit {packets}{}", codel_words(&codel)),
            QueueConfig::FqCoDel(fq) => format!(
                "fq_codel limit {packets} flows {} quantum {}{}",
                fq.flows,
                fq.quantum,
                codel_words(&fq.codel)
            ),
            QueueConfig::Pie(pie) => format!("pie limit {packets}{}", pie_words(&pie)),
        }
    }

    /// Linux's RED counts bytes. If a scenario counts packets, each counts as the largest packet.
    fn red(&self, red: &RedConfig) -> String {
        let unit = red_unit(red, self.largest);
        let bytes = |packets: f64| (packets * unit as f64) as u64;
        let (min, max) = (bytes(red.min), bytes(red.max));
        let limit = match self.config.limit {
            QueueLimit::Unlimited => UNLIMITED * self.largest / 10,
            QueueLimit::Packets(n) => u64::from(n) * self.largest,
            QueueLimit::Bytes(n) => n,
        };
        let burst = red_burst(min, unit, red.weight).unwrap_or(1);
        let mut out = format!(
            "red limit {} min {min} max {max} avpkt {unit} burst {burst} probability {} \
             bandwidth {}bit",
            limit.max(max),
            red.max_probability,
            self.rate.bits_per_sec()
        );
        for (word, is_on) in [("ecn", red.ecn), ("adaptive", red.adaptive.is_some())] {
            if is_on {
                let _ = write!(out, " {word}");
            }
        }
        out
    }
}

fn red_unit(red: &RedConfig, largest: u64) -> u64 {
    match red.unit {
        RedUnit::Packets => largest,
        RedUnit::Bytes => u64::from(red.mean_packet),
    }
}

/// `tc` takes the averaging weight of RED as the `burst` that it should allow. Returns the smallest
/// burst that it converts to the power of two nearest to `weight`.
fn red_burst(min: u64, unit: u64, weight: f64) -> Option<u32> {
    let wanted = (-libm::log2(weight)).round().clamp(1.0, 31.0) as u32;
    let first = min.div_ceil(unit) as u32;
    (first.max(1)..first + 100_000).find(|burst| red_wlog(min, *burst, unit) == Some(wanted))
}

/// Computes as `tc` does (S. Floyd and V. Jacobson, "Random Early Detection Gateways for Congestion
/// Avoidance", 1993, section 6): the largest weight with which a burst does not reach `min`.
fn red_wlog(min: u64, burst: u32, unit: u64) -> Option<u32> {
    let (burst, least) = (f64::from(burst), min as f64 / unit as f64);
    let sum = burst + 1.0 - least;
    if sum < 1.0 {
        return None;
    }
    (1..32).find(|wlog| {
        let weight = libm::ldexp(1.0, -i32::try_from(*wlog).unwrap_or(31));
        sum <= (1.0 - libm::pow(1.0 - weight, burst)) / weight
    })
}

fn queue_gaps(config: &LinkConfig, gaps: &mut Gaps) {
    match config.queue {
        QueueConfig::DropHead if matches!(config.limit, QueueLimit::Bytes(_)) => {
            gaps.push("a drop-head queue with a limit in bytes".into());
        }
        QueueConfig::Red(red) => {
            let unit = red_unit(&red, u64::from(red.mean_packet.max(1)));
            let min = (red.min * unit as f64) as u64;
            if red_burst(min, unit, red.weight).is_none() {
                gaps.push(format!("RED with a weight of {}", red.weight));
            }
        }
        _ => {}
    }
}

/// Where the kernel's queue differs from the scenario's, each as a clause.
pub(super) fn departures(config: &LinkConfig) -> Vec<String> {
    let mut found = Vec::new();
    match config.queue {
        QueueConfig::Red(red) => {
            if red.gentle {
                found.push("RED of Linux is not gentle: it drops all packets above `max`".into());
            }
            if red.unit == RedUnit::Packets {
                found.push(
                    "RED of Linux counts bytes: each packet counts as one of the largest size"
                        .into(),
                );
            }
        }
        QueueConfig::CoDel(_) | QueueConfig::FqCoDel(_) | QueueConfig::Pie(_)
            if matches!(config.limit, QueueLimit::Bytes(_)) =>
        {
            found.push("the limit of this queue is in packets in Linux".into());
        }
        QueueConfig::Pie(pie) if pie.max_burst != PieConfig::default().max_burst => {
            found.push("PIE of Linux allows a burst of 150 ms".into());
        }
        _ => {}
    }
    found
}

fn codel_words(codel: &CoDelConfig) -> String {
    let ecn = if codel.ecn { "ecn" } else { "noecn" };
    let (target, interval) = (micros(codel.target), micros(codel.interval));
    format!(" target {target} interval {interval} {ecn}")
}

/// Linux's PIE has its weights in sixteenths.
fn pie_words(pie: &PieConfig) -> String {
    let sixteenths = |weight: f64| (weight * 16.0).round().clamp(0.0, 32.0) as u32;
    format!(
        " target {} tupdate {} alpha {} beta {} {}",
        micros(pie.target),
        micros(pie.update),
        sixteenths(pie.alpha),
        sixteenths(pie.beta),
        if pie.ecn { "ecn" } else { "noecn" }
    )
}

/// A loss model in netem's words; `None` if netem does not have it.
fn loss_words(loss: &LossConfig) -> Option<String> {
    match *loss {
        LossConfig::None => Some(String::new()),
        LossConfig::Random(share) => Some(format!(" loss random {}", percent(share))),
        LossConfig::GilbertElliott(GilbertElliott { p, r, h, k }) => Some(format!(
            " loss gemodel {} {} {} {}",
            percent(p),
            percent(r),
            percent(1.0 - h),
            percent(1.0 - k)
        )),
        _ => None,
    }
}

fn percent(share: f64) -> String {
    format!("{:.6}%", 100.0 * share)
}

fn micros(time: Duration) -> String {
    format!("{:.3}us", time.as_nanos() as f64 / 1e3)
}
