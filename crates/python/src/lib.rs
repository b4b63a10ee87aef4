//! The module `fontana._fontana`: what the package `fontana` (the folder `python`) is built on.
//! Users see that package alone.

mod buffer;
mod codes;
mod failure;
mod module;
mod session;
