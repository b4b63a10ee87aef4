//! How many symbols it takes.
