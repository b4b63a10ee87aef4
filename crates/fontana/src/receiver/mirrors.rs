//! The options of a receiver that has mirrors.

use super::ReceiverBuilder;
use crate::web::address::MirrorFile;
use crate::web::after::WebAfter;
use crate::web::credentials::MirrorHeader;
use fontana_wire::WebAddress;
use std::net::IpAddr;

/// Mirrors: web servers that have the files of the content. With the feature `web`.
impl ReceiverBuilder {
    /// Receives from these mirrors as well: web servers that have the files of the content under
    /// their names. What they have is requested by ranges, from all of them at once. Only with a
    /// ticket that names its manifest, or beside a group that announces it.
    pub fn mirrors(mut self, mirrors: Vec<WebAddress>) -> Self {
        self.options.web.mirrors = mirrors;
        self
    }

    /// Receives from these mirrors as well, which a ticket names and its user has not chosen. They
    /// are asked at public addresses and in the networks of `senders` alone (the first 24 bits of
    /// an address of IPv4, 64 of IPv6), and their redirects lead to no other host.
    pub fn ticket_mirrors(mut self, mirrors: Vec<WebAddress>, senders: Vec<IpAddr>) -> Self {
        self.options.web.of_ticket = mirrors;
        self.options.web.senders = senders;
        self
    }

    /// Receives from these files of mirrors as well, each of which has an address of its own.
    pub fn mirror_files(mut self, files: Vec<MirrorFile>) -> Self {
        self.options.web.files = files;
        self
    }

    /// Sends these fields in the requests to their mirrors.
    pub fn mirror_headers(mut self, headers: Vec<MirrorHeader>) -> Self {
        self.options.web.headers = headers;
        self
    }

    /// Uses the mirrors beside a group only from then on; `None`: from the beginning.
    pub fn web_after(mut self, after: Option<WebAfter>) -> Self {
        self.options.web.after = after;
        self
    }

    /// Sets whether to receive from the group. If not, a receiver has only its
    /// [`mirrors`](Self::mirrors), and opens no socket for UDP. By default it is on.
    pub fn from_group(mut self, receives: bool) -> Self {
        self.options.has_group = receives;
        self
    }
}
