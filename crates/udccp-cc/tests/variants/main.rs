//! Each window algorithm against its closed form or points worked out by hand.

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
