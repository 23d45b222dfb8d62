//! Scripts of this repository that are longer than a screen.
fn main() {}
