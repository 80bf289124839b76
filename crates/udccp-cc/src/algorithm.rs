//! Selects and builds a window algorithm.

use crate::bbr::{Bbr, BbrConfig};
use crate::bic::{Bic, BicConfig};
use crate::compound::{Compound, CompoundConfig};
use crate::control::CongestionControl;
use crate::cubic::{Cubic, CubicConfig};
use crate::custom::CustomAlgorithm;
use crate::highspeed::{HighSpeed, HighSpeedConfig};
use crate::htcp::{Htcp, HtcpConfig};
use crate::hybla::{Hybla, HyblaConfig};
use crate::illinois::{Illinois, IllinoisConfig};
use crate::lp::{Lp, LpConfig};
use crate::newreno::NewReno;
use crate::parts::{Cut, GrowthAfterCut};
use crate::policy::PolicyWindow;
use crate::scalable::{Scalable, ScalableConfig};
use crate::vegas::{Vegas, VegasConfig};
use crate::veno::{Veno, VenoConfig};
use crate::westwood::{Westwood, WestwoodConfig};
use crate::yeah::{Yeah, YeahConfig};

/// A window algorithm with its parameters. All windows are in packets.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Algorithm {
    /// Additive increase by one packet per window, and a multiplicative cut (RFC 5681, RFC 4341
    /// section 5).
    NewReno {
        /// The share of the window that is kept after a congestion event.
        cut: Cut,
        /// Which packets count for growth after a congestion event.
        after_cut: GrowthAfterCut,
    },
    /// CUBIC.
    Cubic(CubicConfig),
    /// BIC (Xu, Harfoush and Rhee 2004).
    Bic(BicConfig),
    /// HighSpeed TCP (RFC 3649).
    HighSpeed(HighSpeedConfig),
    /// H-TCP (Leith and Shorten 2004).
    Htcp(HtcpConfig),
    /// Hybla (Caini and Firrincieli 2004).
    Hybla(HyblaConfig),
    /// Scalable TCP (Kelly 2003).
    Scalable(ScalableConfig),
    /// TCP-Illinois (Liu, Basar and Srikant 2008).
    Illinois(IllinoisConfig),
    /// TCP-LP (Kuzmanovic and Knightly 2006).
    Lp(LpConfig),
    /// Vegas (Brakmo and Peterson 1995).
    Vegas(VegasConfig),
    /// Veno (Fu and Liew 2003).
    Veno(VenoConfig),
    /// Westwood+ (Grieco and Mascolo 2004).
    Westwood(WestwoodConfig),
    /// YeAH (Baiocchi, Castellani and Vacirca 2007).
    Yeah(YeahConfig),
    /// Compound TCP (Tan, Song, Zhang and Sridharan 2006).
    Compound(CompoundConfig),
    /// BBR v1 (Cardwell et al. 2016).
    Bbr(BbrConfig),
    /// An algorithm built outside this crate.
    Custom(CustomAlgorithm),
}

impl Algorithm {
    /// The standard of TCP: additive increase, halving, no growth in recovery (RFC 5681).
    pub const NEW_RENO: Self = Self::NewReno { cut: Cut::HALF, after_cut: GrowthAfterCut::Pauses };

    /// The standard of CCID 2: additive increase, halving, continued growth after a cut (RFC 4341
    /// section 5, as other implementations interpret it).
    pub const CCID2: Self = Self::NewReno { cut: Cut::HALF, after_cut: GrowthAfterCut::Continues };

    /// Creates an instance with an initial window of `initial_cwnd` packets (at least 1).
    pub fn build(&self, initial_cwnd: u32) -> Box<dyn CongestionControl> {
        let first = initial_cwnd;
        match self {
            Self::NewReno { cut, after_cut } => {
                Box::new(NewReno::new(initial_cwnd, *cut, *after_cut))
            }
            Self::Cubic(config) => Box::new(Cubic::new(initial_cwnd, config.clone())),
            Self::Bic(config) => Box::new(PolicyWindow::new(first, Bic::new(config.clone()))),
            Self::HighSpeed(config) => {
                Box::new(PolicyWindow::new(first, HighSpeed::new(config.clone())))
            }
            Self::Htcp(config) => Box::new(PolicyWindow::new(first, Htcp::new(config.clone()))),
            Self::Hybla(config) => Box::new(PolicyWindow::new(first, Hybla::new(config.clone()))),
            Self::Scalable(config) => {
                Box::new(PolicyWindow::new(first, Scalable::new(config.clone())))
            }
            Self::Illinois(config) => {
                Box::new(PolicyWindow::new(first, Illinois::new(config.clone())))
            }
            Self::Lp(config) => Box::new(PolicyWindow::new(first, Lp::new(config.clone()))),
            Self::Vegas(config) => Box::new(PolicyWindow::new(first, Vegas::new(config.clone()))),
            Self::Veno(config) => Box::new(PolicyWindow::new(first, Veno::new(config.clone()))),
            Self::Westwood(config) => {
                Box::new(PolicyWindow::new(first, Westwood::new(config.clone())))
            }
            Self::Yeah(config) => Box::new(PolicyWindow::new(first, Yeah::new(config.clone()))),
            Self::Bbr(config) => Box::new(Bbr::new(first, config.clone())),
            Self::Custom(custom) => custom.instance(first.max(1)),
            Self::Compound(config) => {
                Box::new(PolicyWindow::new(first, Compound::new(config.clone())))
            }
        }
    }
}

impl Default for Algorithm {
    fn default() -> Self {
        Self::NEW_RENO
    }
}
