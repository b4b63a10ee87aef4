//! fontana
