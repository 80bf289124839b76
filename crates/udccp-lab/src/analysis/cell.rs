//! A cell of a table: our runs, the published value, and their comparison.

use udccp_metrics::Summary;
use udccp_scenario::protocol::Protocol;

use super::basis::Basis;
use super::labels::{fixed, label_text, own_name};
use super::reason::Reason;
use super::spread::Spread;
use crate::schema::{FLOW_KEY, METRIC_KEY, MetricSpec, Names, Point, Published};

/// One cell.
#[derive(Debug)]
pub struct Cell {
    /// Its grid point; also `flow`, `metric` and `case` if the table distinguishes them.
    pub labels: Point,
    /// The case (`None`: the file without its cases) and the grid point of its runs.
    pub place: (Option<String>, Point),
    /// Its metric.
    pub shown: MetricSpec,
    /// Its protocol: that of its flow, or one that a label names; `None` if there is none.
    pub protocol: Option<&'static Protocol>,
    /// Mean and spread of our runs.
    pub ours: Summary,
    /// How far they differ from each other.
    pub spread: Spread,
    /// How many runs there are, and how many the file asks for.
    pub basis: Basis,
    /// Whether its flow does not run during the time of the value.
    pub idle: bool,
    /// How many runs have no value.
    pub without: usize,
    /// Why a run has no value, if one has none.
    pub undefined: Option<String>,
    /// The published value; `None` if there is none.
    pub published: Option<Published>,
    /// Whether the only flow of its runs fills the link, and the metric shows only that.
    pub fills_link: bool,
    /// The result of the comparison.
    pub agreement: Agreement,
    /// Why the two differ, if runs support it.
    pub reasons: Vec<Reason>,
    /// The backend that agrees with every value of the table, if ours differs.
    pub agreeing_backend: Option<String>,
    /// Names of its labels.
    pub(super) names: Names,
}

/// How our mean compares with the published value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// No run yet.
    Missing,
    /// No value was published.
    Alone,
    /// Too few runs to be judged, or shortened ones.
    Unjudged,
    /// Within the distance that counts as agreement.
    Close,
    /// The same, but the only flow of the run fills its link. Any sender would agree, so the cell
    /// is not counted.
    LinkLimited,
    /// Neither has a value. This is not counted either.
    Neither,
    /// Further away, but the published value is in our 95 % interval.
    InInterval,
    /// Further away; or only one of the two has a value.
    Differs,
}

impl Agreement {
    /// As a word for exports; empty if there is nothing to compare with.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Close => "agrees",
            Self::LinkLimited => "agrees, link-limited",
            Self::Neither => "neither has a value",
            Self::InInterval => "in interval",
            Self::Differs => "differs",
            Self::Unjudged => "not judged yet",
            Self::Missing | Self::Alone => "",
        }
    }

    /// Whether it agrees, counted or not.
    pub(super) fn is_met(self) -> bool {
        matches!(self, Self::Close | Self::LinkLimited | Self::Neither)
    }

    /// The same of a cell whose flow fills its link, or not.
    pub(super) fn on_link(self, is_full: bool) -> Self {
        if self == Self::Close && is_full { Self::LinkLimited } else { self }
    }
}

impl Cell {
    /// Our mean minus the published value.
    pub fn difference(&self) -> Option<f64> {
        Some(self.ours.mean.ok()? - self.published?.value?)
    }

    /// Whether it is counted: there is something to compare its runs with, and the comparison is
    /// meaningful.
    pub fn is_compared(&self) -> bool {
        matches!(self.agreement, Agreement::Close | Agreement::InInterval | Agreement::Differs)
    }

    /// Whether it agrees but is not counted.
    pub fn is_unscored(&self) -> bool {
        matches!(self.agreement, Agreement::LinkLimited | Agreement::Neither)
    }

    /// Whether it is judged, counted or not.
    pub fn has_verdict(&self) -> bool {
        self.is_compared() || self.is_unscored()
    }

    /// Whether it has both a value of ours and a published one, judged or not.
    pub fn has_both(&self) -> bool {
        self.has_verdict() || self.agreement == Agreement::Unjudged
    }

    /// Whether it has runs, but fewer or shorter ones than the file asks for.
    pub fn is_early(&self) -> bool {
        self.runs() > 0 && !self.basis.is_enough()
    }

    /// Whether the difference needs an explanation.
    pub fn needs_reason(&self) -> bool {
        matches!(self.agreement, Agreement::InInterval | Agreement::Differs)
    }

    /// Whether a run supports one of the reasons, or another backend agrees with the table.
    pub fn is_explained(&self) -> bool {
        self.agreeing_backend.is_some()
            || self.reasons.iter().any(|r| r.support.is_some_and(|s| s.counts()))
    }

    /// Our mean as printed with its [`Spread`]; a dash if there is none, or if the flow does not
    /// run.
    pub(crate) fn ours_text(&self, plus_minus: &str) -> String {
        let Some(mean) = self.mean() else { return "–".to_owned() };
        self.spread.beside(mean, &self.printed(), plus_minus)
    }

    /// Our mean; `None` if the flow does not run.
    pub(crate) fn mean(&self) -> Option<f64> {
        self.ours.mean.ok().filter(|_| !self.idle)
    }

    /// A value with as many digits as its uncertainty justifies.
    pub(crate) fn print(&self, value: f64) -> String {
        fixed(value, self.digits())
    }

    /// The metric with as many printed digits as the uncertainty justifies.
    pub(crate) fn printed(&self) -> MetricSpec {
        MetricSpec { digits: self.digits(), ..self.shown.clone() }
    }

    /// Digits after the point: two of the uncertainty of the mean, or three of the mean if that is
    /// unknown; at most as many as the file asks for.
    pub(crate) fn digits(&self) -> usize {
        let doubt = self.spread.doubt();
        let (value, wanted) = match self.ours.mean {
            Ok(_) if doubt > 0.0 => (doubt, 2),
            Ok(mean) if mean != 0.0 => (mean.abs(), 3),
            Ok(_) => return 0,
            Err(_) => return self.shown.digits,
        };
        // Rounding errors in the last bits may make 0.1 slightly less.
        let first = (libm::log10(value) + 1e-9).floor() as i64;
        usize::try_from(wanted - 1 - first).unwrap_or(0).min(self.shown.digits)
    }

    /// The comparison with the published value, as if its runs were enough.
    pub(super) fn if_judged(&self) -> Agreement {
        let basis = Basis { runs: self.basis.runs, asked: 0, shortened: false };
        let held = (&self.ours, &self.spread);
        let found = agreement(held, self.without, basis, self.published, &self.shown);
        found.on_link(self.fills_link)
    }

    /// Number of runs, with a value or without.
    pub fn runs(&self) -> usize {
        self.ours.n + self.without
    }

    /// The cell in words: `TCP CUBIC (2007), 50 ms`.
    pub fn title(&self) -> String {
        let word = |(key, label): &(String, String)| match key.as_str() {
            METRIC_KEY => self.shown.title().to_owned(),
            FLOW_KEY => match self.protocol.map(|p| (own_name(&self.names, label, p.title), p)) {
                Some((None, protocol)) => protocol.title.to_owned(),
                _ => label_text(&self.names, key, label),
            },
            _ => label_text(&self.names, key, label),
        };
        self.labels.iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

/// How runs compare with what was published.
pub(super) fn agreement(
    (ours, spread): (&Summary, &Spread),
    without: usize,
    basis: Basis,
    published: Option<Published>,
    shown: &MetricSpec,
) -> Agreement {
    if ours.n + without == 0 {
        return Agreement::Missing;
    }
    if published.is_some() && !basis.is_enough() {
        return Agreement::Unjudged;
    }
    let Some(published) = published else { return Agreement::Alone };
    match (ours.mean.ok(), published.value) {
        (None, None) => Agreement::Neither,
        (None, Some(_)) | (Some(_), None) => Agreement::Differs,
        (Some(mean), Some(_)) if is_close(mean, &published, shown) => Agreement::Close,
        (Some(_), Some(value)) => {
            let inside = |(low, high)| (low..=high).contains(&value);
            if spread.interval().is_some_and(inside) {
                Agreement::InInterval
            } else {
                Agreement::Differs
            }
        }
    }
}

/// Whether a mean agrees with the published value, compared with the printed digits.
pub(super) fn is_close(mean: f64, published: &Published, shown: &MetricSpec) -> bool {
    let (Some(value), Some(tolerance)) = (published.value, published.tolerance(shown)) else {
        return false;
    };
    let unit = shown.last_digit();
    let round = |x: f64| (x / unit).round() * unit;
    (round(mean) - round(value)).abs() <= tolerance + unit * 1e-6
}
