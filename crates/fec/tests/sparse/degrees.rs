//! The integers behind LT's rows, frozen.
