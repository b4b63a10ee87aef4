//! Evaluating the utility of FEC with reliable multicast (Li, Cheriton, ICNP 1999): SRM,
//! TMTP-uni and OTERS, each with repairs of single packets, with FEC packets on request, and with
//! FEC packets that are sent before any request.
//!
//! In this folder, a section without further source is a section of this paper. The endpoints are
//! studied, and no part of the product. A protocol is a [`Scheme`](scheme::Scheme); what all of
//! them have is in `member`, `reception` and `endpoint`.

pub(crate) mod appendix;
pub(crate) mod baby;
mod endpoint;
mod estimates;
pub(crate) mod figures;
mod member;
mod one_way;
mod oters;
mod packet;
pub(crate) mod product;
pub(crate) mod real;
mod reception;
mod run;
mod scheme;
mod segments;
pub(crate) mod sensitivity;
mod server;
mod setting;
pub(crate) mod sites;
mod srm;
mod sweep;
pub(crate) mod table1;
mod tmtp;
