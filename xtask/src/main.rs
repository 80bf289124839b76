//! House rules of the repository.

fn main() {}
