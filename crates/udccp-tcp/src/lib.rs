//! A SACK TCP model with pluggable congestion control, and UDP, as pure state machines.
