//! The route of each flow over the hops.

use core::ops::Range;

use crate::chain::{Chain, FlowOf};
use crate::network;
use crate::record::Crossings;
use crate::result::Crossing;

/// The hops that a flow crosses.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    hops: Range<u32>,
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
        let (enters, leaves) = ends.unwrap_or((0, chain.hops.len()));
        let (left, right) = (enters.min(leaves), enters.max(leaves));
        Self { hops: left as u32..right as u32, is_reverse: enters >= leaves }
    }

    /// What the flow sent over each hop in the measured window, in the order in which data crosses
    /// them.
    pub(crate) fn crossings(&self, counted: &Crossings, flow: usize) -> Vec<Crossing> {
        let one = |hop: u32| {
            let hop = hop as usize;
            let [data, acks] = [2 * flow, 2 * flow + 1].map(|path| counted.measured(hop, path));
            Crossing { hop, data, acks }
        };
        let hops = self.hops.clone();
        if self.is_reverse { hops.rev().map(one).collect() } else { hops.map(one).collect() }
    }
}

impl FlowPlan {
    /// The host whose congestion state is that of the flow; `None` for a flow of several pairs.
    pub(crate) fn sender(&self) -> Option<u32> {
        (self.of.pairs == 1).then(|| network::sender_of(self.of.first) as u32)
    }
}
