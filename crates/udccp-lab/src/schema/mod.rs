//! Reads experiment files: scenarios with a grid, runs, tables, figures, references, claims and
//! assumptions. The scenario itself is read by `udccp_scenario`.

mod answer;
mod calibrate;
mod case;
mod claim;
mod close;
mod context;
mod experiment;
mod figure;
mod grid;
mod metric;
mod metric_spec;
mod quantity;
mod reference;
mod table;
mod unit;

pub use answer::{Answer, Sentence};
pub use calibrate::{Calibration, Knob, Setting};
pub use case::Case;
pub(crate) use case::{PARTS, check_change};
pub use claim::{Bound, Claim, Explanation, Origin, Predicate, Side};
pub use close::{Close, Published};
pub use context::{CASE_AXIS, Names, View};
pub use experiment::{Assumption, Experiment, Study, Summary, Variant};
pub use figure::{
    Curve, CurveFunction, Figure, FigureKind, TableFigure, TableForm, TimeFigure, TimeMetric,
};
pub use grid::{Axis, Filter, Grid, Point};
pub use metric::{Metric, Rates};
pub use metric_spec::{MetricSpec, Weights, Window, group_of};
pub(crate) use quantity::number;
pub use reference::Reference;
pub use table::{FLOW_KEY, METRIC_KEY, Table};

use udccp_scenario::schema::choice;
pub use udccp_scenario::schema::{
    AckCounting, BDP_PACKET_BYTES, CodecName, DccpOptions, DccpProfile, Direction, Flow,
    GrowthAfterCut, Hop, HostTimers, Limit, Link, LinkChange, LossDetection, Measure, NatPlace,
    Packets, Percent, Propagation, RandomVariable, Reduction, SCHEMA, Scenario, Service, Shape,
    Silence, StartWindow, TcpOptions, TcpProfile, Time, Topology, Trace, Traffic,
};

/// The names of the flows as written in a file.
fn flow_names(flows: &udccp_scenario::document::Node) -> Vec<String> {
    let udccp_scenario::document::Value::List(flows) = &flows.value else { return Vec::new() };
    flows.iter().filter_map(|f| f.get("name")).map(udccp_scenario::document::Node::label).collect()
}
