//! The program `fontana`.
fn main() {}
