//! Deterministic discrete-event simulator: hosts, topologies, sources, recorders.
