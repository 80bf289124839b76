//! CCID 2 against traces computed by hand, and against the law of random loss.

mod ack_ratio;
mod data_dropped;
mod experimental;
mod history;
mod idle;
mod law;
mod line;
mod quick_start;
mod receiver;
mod timing;
mod trains;
mod window;
