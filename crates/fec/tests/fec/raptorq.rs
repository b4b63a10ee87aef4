//! RaptorQ through the public interface: the RFC, comparison with another implementation, attacks,
//! and the rate of decoding failures.

mod failure;
mod fuzz;
mod hostile;
mod peer;
mod recover;
mod reference;
mod vectors;
