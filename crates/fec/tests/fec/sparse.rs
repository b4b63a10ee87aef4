//! Tornado and LT codes through the public interface: the printed graph, the number of symbols
//! needed, any symbols in any order against plain elimination, and attacks.

mod degrees;
mod fuzz;
mod graph;
mod hostile;
mod reception;
mod reference;
