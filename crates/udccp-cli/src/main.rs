//! The `udccp` program.

fn main() {}
