//! CCID 2, TCP-like congestion control (RFC 4341).

mod config;
mod receiver;
mod sender;

pub use config::{AckRatioConfig, Ccid2Config, IdlePolicy};
pub use receiver::Ccid2Receiver;
pub use sender::Ccid2Sender;

/// The CCID's number.
pub const NUMBER: u8 = 2;
