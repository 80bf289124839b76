//! The files: a scenario is topology, time and flows; an experiment adds a grid, runs, tables,
//! figures, references, claims and assumptions.

mod case;
mod change;
pub(crate) mod choice;
mod claim;
mod context;
mod drawn;
mod experiment;
mod figure;
mod flow;
mod grid;
mod link;
mod loss;
mod metric;
mod quantity;
mod queue;
mod records;
mod reference;
mod scenario;
mod shown;
mod table;
mod topology;
mod trace;
mod traffic;

pub use case::Case;
pub(crate) use case::PARTS;
pub use change::LinkChange;
pub use change::hop_name;
pub(crate) use change::of_link;
pub use claim::{Bound, Claim, Explanation, Predicate, Side};
pub use context::{CASE_AXIS, View};
pub(crate) use experiment::base_folder;
pub use experiment::{Assumption, Experiment, Study, Variant};
pub use figure::{
    Curve, CurveFunction, Figure, FigureKind, TableFigure, TableForm, TimeFigure, TimeMetric,
};
pub use flow::{
    AckCounting, DccpOptions, Direction, Flow, NatPlace, Reduction, TcpOptions, TcpProfile,
};
pub use grid::{Axis, Filter, Grid, Point};
pub use link::{Link, Propagation};
pub use metric::{Metric, Rates};
pub use quantity::{BDP_PACKET_BYTES, Limit, Packets, Percent, StartWindow};
pub use reference::{Published, Reference};
pub use scenario::{Measure, SCHEMA, Scenario, Time};
pub use shown::{Close, Shown, Weights, Window, group_of};
pub use table::{FLOW_KEY, METRIC_KEY, Table};
pub use topology::{Hop, Shape, Topology};
pub use traffic::{CodecName, Drawn, Silence, Trace, Traffic};

/// The names of the flows as a file writes them.
fn flow_names(flows: &crate::document::Node) -> Vec<String> {
    let crate::document::Value::List(flows) = &flows.value else { return Vec::new() };
    flows.iter().filter_map(|f| f.get("name")).map(crate::document::Node::label).collect()
}
