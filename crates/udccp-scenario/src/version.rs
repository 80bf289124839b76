//! The version of the code that produces a result.

/// Version of the program with the hash of the code that results depend on, such as
/// `0.1.0+1a2b3c4d5e6f`.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("UDCCP_CODE_HASH"));
