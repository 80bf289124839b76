//! Random, regular and recorded loss.

mod config;
mod model;
#[cfg(test)]
mod tests;

pub use config::{GilbertElliott, LossConfig};
pub use model::Loss;
