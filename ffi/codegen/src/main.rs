//! codegen
fn main() {}
