//! Each window algorithm against its closed form or points worked out by hand.

mod bic;
mod path;
