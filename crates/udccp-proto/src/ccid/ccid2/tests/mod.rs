//! Compares CCID 2 with traces computed by hand, and with the law of random loss.

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
