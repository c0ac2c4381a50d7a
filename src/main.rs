//! The `parlayout` binary.
fn main() {}
