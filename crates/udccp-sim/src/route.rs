//! The route of each flow over the hops.

use core::ops::Range;

use crate::chain::{Chain, FlowOf};
use crate::network;
use crate::record::Crossings;
use crate::result::Crossing;

/// The hops that a flow crosses.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// In the order in which data crosses them.
    hops: Vec<usize>,
    /// Whether data runs from right to left.
    is_reverse: bool,
}

/// The properties of a flow that are known before the run.
pub(crate) struct FlowPlan {
    pub(crate) of: FlowOf,
    pub(crate) route: Route,
}

impl Route {
    /// The route of a flow. All its pairs take the route of the first.
    pub(crate) fn of(chain: &Chain, flow: &FlowOf) -> Self {
        let ends = chain.pairs.get(flow.first).map(|pair| chain.ends_of(pair));
        match ends.unwrap_or((0, chain.hops.len())) {
            (enters, leaves) if enters < leaves => {
                Self { hops: (enters..leaves).collect(), is_reverse: false }
            }
            (enters, leaves) => Self { hops: (leaves..enters).rev().collect(), is_reverse: true },
        }
    }

    /// The links of a hop that carry data and acknowledgements; see `Network::row`.
    fn links(&self, hop: usize) -> [usize; 2] {
        let [forward, reverse] = [2 * hop, 2 * hop + 1];
        if self.is_reverse { [reverse, forward] } else { [forward, reverse] }
    }

    pub(crate) fn crossings(&self, counted: &Crossings, flow: usize) -> Vec<Crossing> {
        let one = |&hop: &usize| {
            let [data, acks] = self.links(hop);
            Crossing {
                hop,
                data: counted.measured(data, 2 * flow),
                acks: counted.measured(acks, 2 * flow + 1),
            }
        };
        self.hops.iter().map(one).collect()
    }
}

impl FlowPlan {
    /// The numbers of its pairs.
    pub(crate) const fn pairs(&self) -> Range<usize> {
        self.of.first..self.of.first + self.of.pairs
    }

    /// The host whose congestion state is that of the flow; `None` for a flow of several pairs.
    pub(crate) fn sender(&self) -> Option<usize> {
        (self.of.pairs == 1).then(|| network::sender_of(self.of.first))
    }
}
