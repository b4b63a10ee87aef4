//! Bulk Multicast Transport Protocol (Morris, INFOCOM 1997): one multicast group. The receivers
//! report their rate and request lost packets, and the sender hears of about one of them for each
//! packet that it sends.
//!
//! In this folder, a section without further source is a section of this paper. The endpoints are
//! those of the paper; they are studied, and no part of the product. What the product shares with
//! them is [`fontana_proto::feedback`]. Only `further` runs the product's endpoints.

pub(crate) mod crowds;
pub(crate) mod equal;
pub(crate) mod errors;
pub(crate) mod further;
mod log;
mod missing;
pub(crate) mod modem;
mod packet;
mod pieces;
pub(crate) mod protocol;
mod rate;
pub(crate) mod real;
mod receive_rate;
mod receiver;
mod request_times;
mod resends;
mod run;
pub(crate) mod scale;
mod sender;
mod session;
pub(crate) mod skew;
pub(crate) mod start;
pub(crate) mod startup;
pub(crate) mod weight;
