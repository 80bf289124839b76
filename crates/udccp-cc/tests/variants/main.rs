//! Compares each window algorithm with its closed form or with points computed by hand.

mod bic;
mod delays;
mod highspeed;
mod htcp;
mod hybla;
mod hystart;
mod illinois;
mod lp;
mod path;
mod scalable;
mod westwood;
