//! The files: a scenario is topology, time and flows; an experiment adds a grid, runs, tables,
//! figures, references, claims and assumptions.

pub(crate) mod choice;
mod claim;
mod experiment;
mod flow;
mod grid;
mod link;
mod metric;
mod quantity;
mod reference;
mod scenario;
mod table;
mod traffic;

pub use claim::{Bound, Claim, Explanation, Predicate};
pub use experiment::{Assumption, Experiment, Study, Variant};
pub use flow::{AckCounting, DccpOptions, Flow, Reduction, TcpOptions, TcpProfile};
pub use grid::{Axis, Filter, Grid, Point};
pub use link::{Link, Propagation, Queue};
pub use metric::{Metric, Rates};
pub use quantity::{BDP_PACKET_BYTES, Limit, Packets, Percent, StartWindow};
pub use reference::{Published, Reference};
pub use scenario::{Measure, SCHEMA, Scenario, Shape, Time, Topology};
pub use table::{Figure, FigureKind, Table};
pub use traffic::Traffic;
