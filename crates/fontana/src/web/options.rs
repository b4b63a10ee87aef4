//! The mirrors that a receiver is given.

use super::address::MirrorFile;
use super::after::WebAfter;
use super::credentials::MirrorHeader;
use fontana_wire::WebAddress;
use std::net::IpAddr;

/// The mirrors of a receiver. By default it has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct WebOptions {
    /// Web servers that have the files.
    pub(crate) mirrors: Vec<WebAddress>,
    /// Web servers that a ticket names, and its user does not.
    pub(crate) of_ticket: Vec<WebAddress>,
    /// The senders of the ticket: private addresses of these servers are in their networks.
    pub(crate) senders: Vec<IpAddr>,
    /// Files of web servers, each with an address of its own.
    pub(crate) files: Vec<MirrorFile>,
    pub(crate) headers: Vec<MirrorHeader>,
    /// From when on mirrors are used beside a group; from the beginning if `None`.
    pub(crate) after: Option<WebAfter>,
}
