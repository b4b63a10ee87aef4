//! Tickets: everything a receiver needs to know, in one line of text.
//!
//! ```text
//! fontana://[SOURCE{,SOURCE}@]GROUP:PORT/TSI[?key=HEX][&manifest=HEX][&channels=N|&groups=GROUP{,GROUP}]
//! ```
//! `SOURCE` and `GROUP` are addresses, IPv6 in brackets; `HEX` is 64 hexadecimal digits; a session of
//! several channels says how many there are on consecutive groups, or the groups of the others. The
//! exact grammar is in `docs/wire.md`.
//!
//! ```
//! use fontana_wire::{Ticket, Tsi};
//!
//! let ticket: Ticket = "fontana://10.0.0.7@232.1.2.3:7701/5".parse()?;
//! assert_eq!(ticket.tsi, Tsi(5));
//! assert_eq!(ticket.to_string(), "fontana://10.0.0.7@232.1.2.3:7701/5");
//! # Ok::<(), fontana_wire::TicketError>(())
//! ```

use crate::channels::ChannelGroups;
use crate::congestion::MAX_CHANNELS;
use crate::hash::{Hash, HexError};
use crate::id::Tsi;
use crate::key::{KeyError, PublicKey};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

const SCHEME: &str = "fontana://";
/// A ticket with the most sources and groups there may be has some 3 700 characters.
const MAX_SIZE: usize = 4096;

/// Where a session is and whom to believe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Senders to join the group from; none means any. All of the group's family, none twice, at
    /// most [`Ticket::MAX_SOURCES`].
    pub sources: Vec<IpAddr>,
    /// Where the packets go: a multicast group, or a broadcast or unicast address where there is
    /// no multicast.
    pub group: IpAddr,
    /// UDP port. Not 0.
    pub port: u16,
    /// The session.
    pub tsi: Tsi,
    /// The publisher, whose signature the session head must have.
    pub key: Option<PublicKey>,
    /// The manifest, if it is to be this one and no other.
    pub manifest: Option<Hash>,
    /// The groups of all channels; of more than one only where `group` is multicast. A receiver joins
    /// no others, whatever the session says of itself.
    pub channels: ChannelGroups,
}

impl Ticket {
    /// Most sources of a ticket. Ten is Linux's default for the sources of one group on a socket
    /// (igmp_max_msf); twice that takes two sockets.
    pub const MAX_SOURCES: usize = 20;

    /// Group and port.
    pub fn destination(&self) -> SocketAddr {
        SocketAddr::new(self.group, self.port)
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        write_addresses(f, &self.sources)?;
        f.write_str(if self.sources.is_empty() { "" } else { "@" })?;
        write!(f, "{}/{}", self.destination(), self.tsi)?;
        let mut separators = std::iter::once('?').chain(std::iter::repeat('&'));
        let mut separator = move || separators.next().unwrap_or('&');
        if let Some(key) = self.key {
            write!(f, "{}key={key}", separator())?;
        }
        if let Some(manifest) = self.manifest {
            write!(f, "{}manifest={manifest}", separator())?;
        }
        match &self.channels {
            ChannelGroups::Consecutive(..=1) => Ok(()),
            ChannelGroups::Consecutive(count) => write!(f, "{}channels={count}", separator()),
            ChannelGroups::Listed(others) => {
                write!(f, "{}groups=", separator())?;
                write_addresses(f, others)
            }
        }
    }
}

fn write_addresses(f: &mut fmt::Formatter<'_>, addresses: &[IpAddr]) -> fmt::Result {
    for (index, address) in addresses.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { "," })?;
        match address {
            IpAddr::V4(address) => write!(f, "{address}")?,
            IpAddr::V6(address) => write!(f, "[{address}]")?,
        }
    }
    Ok(())
}

impl FromStr for Ticket {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Self, TicketError> {
        if text.len() > MAX_SIZE {
            return Err(TicketError::Size { limit: MAX_SIZE });
        }
        let rest = text.strip_prefix(SCHEME).ok_or(TicketError::Scheme)?;
        let (place, query) = match rest.split_once('?') {
            Some((place, query)) => (place, Some(query)),
            None => (rest, None),
        };
        let (authority, tsi) = place.split_once('/').ok_or(TicketError::NoTsi)?;
        let (sources, destination) = match authority.split_once('@') {
            Some((sources, destination)) => (Some(sources), destination),
            None => (None, authority),
        };
        let (group, port) = parse_destination(destination)?;
        let mut ticket = Self {
            sources: Vec::new(),
            group,
            port,
            tsi: parse_tsi(tsi)?,
            key: None,
            manifest: None,
            channels: ChannelGroups::default(),
        };
        for source in sources.into_iter().flat_map(|sources| sources.split(',')) {
            ticket.add_source(source)?;
        }
        for parameter in query.into_iter().flat_map(|query| query.split('&')) {
            ticket.add_parameter(parameter)?;
        }
        Ok(ticket)
    }
}

impl Ticket {
    fn add_source(&mut self, text: &str) -> Result<(), TicketError> {
        let source = parse_address(text)?;
        if source.is_ipv4() != self.group.is_ipv4() {
            return Err(TicketError::Family { source_address: source, group: self.group });
        }
        if source.is_multicast() {
            return Err(TicketError::MulticastSource(source));
        }
        if self.sources.contains(&source) {
            return Err(TicketError::RepeatedSource(source));
        }
        if self.sources.len() >= Self::MAX_SOURCES {
            return Err(TicketError::SourceCount { limit: Self::MAX_SOURCES });
        }
        self.sources.push(source);
        Ok(())
    }

    fn add_parameter(&mut self, parameter: &str) -> Result<(), TicketError> {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name {
            "key" if self.key.is_none() => {
                self.key = Some(value.parse().map_err(TicketError::Key)?);
            }
            "manifest" if self.manifest.is_none() => {
                self.manifest = Some(value.parse().map_err(TicketError::Manifest)?);
            }
            "channels" if self.channels.count() == 1 => {
                self.channels = ChannelGroups::Consecutive(parse_channel_count(value)?);
                self.check_groups()?;
            }
            "groups" if self.channels.count() == 1 => {
                // One too many is enough to tell.
                let most = usize::from(MAX_CHANNELS);
                let others = value.split(',').take(most).map(parse_address);
                self.channels = ChannelGroups::Listed(others.collect::<Result<_, _>>()?);
                self.check_groups()?;
            }
            "channels" | "groups" => return Err(TicketError::RepeatedChannels),
            "key" | "manifest" => return Err(TicketError::RepeatedParameter(name.to_owned())),
            _ => return Err(TicketError::UnknownParameter(excerpt(name))),
        }
        Ok(())
    }
}

impl Ticket {
    /// Whether several channels can be on these groups.
    fn check_groups(&self) -> Result<(), TicketError> {
        let (count, limit) = (self.channels.count(), MAX_CHANNELS);
        if count > limit {
            return Err(TicketError::ChannelCount(excerpt(&count.to_string())));
        }
        let mut seen = BTreeSet::new();
        for group in self.channels.groups(self.group) {
            if !group.is_multicast() || group.is_ipv4() != self.group.is_ipv4() {
                return Err(TicketError::NotAGroup { group, first: self.group });
            }
            if !seen.insert(group) {
                return Err(TicketError::RepeatedGroup(group));
            }
        }
        // Fewer only where the addresses come to their end.
        let all = seen.len() == usize::from(count);
        all.then_some(()).ok_or(TicketError::BeyondTheLastGroup { first: self.group, count })
    }
}

/// One channel needs no saying.
fn parse_channel_count(text: &str) -> Result<u8, TicketError> {
    let count = decimal(text).and_then(|count| u8::try_from(count).ok());
    count
        .filter(|count| (2..=MAX_CHANNELS).contains(count))
        .ok_or_else(|| TicketError::ChannelCount(excerpt(text)))
}

fn parse_destination(text: &str) -> Result<(IpAddr, u16), TicketError> {
    let no_port = || TicketError::NoPort(excerpt(text));
    let (address, port) = text.rsplit_once(':').ok_or_else(no_port)?;
    // The last colon of an IPv6 address in brackets is inside them.
    if port.ends_with(']') {
        return Err(no_port());
    }
    let group = parse_address(address)?;
    let port = decimal(port)
        .and_then(|port| u16::try_from(port).ok())
        .filter(|&port| port != 0)
        .ok_or_else(|| TicketError::Port(excerpt(port)))?;
    Ok((group, port))
}

fn parse_address(text: &str) -> Result<IpAddr, TicketError> {
    let invalid = || TicketError::Address(excerpt(text));
    let address: IpAddr = match text.strip_prefix('[') {
        Some(rest) => {
            let inside = rest.strip_suffix(']').ok_or_else(invalid)?;
            if inside.contains('%') {
                return Err(TicketError::Zone(excerpt(inside)));
            }
            IpAddr::V6(inside.parse().map_err(|_| invalid())?)
        }
        None => IpAddr::V4(text.parse().map_err(|_| invalid())?),
    };
    if address.is_unspecified() {
        return Err(TicketError::Unspecified(address));
    }
    Ok(address)
}

fn parse_tsi(text: &str) -> Result<Tsi, TicketError> {
    let tsi = decimal(text).map(Tsi).filter(|&tsi| tsi <= Tsi::MAX);
    tsi.ok_or_else(|| TicketError::Tsi(excerpt(text)))
}

/// Digits only, without leading zeros: one text for one number.
fn decimal(text: &str) -> Option<u64> {
    let canonical =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    canonical.then(|| text.parse().ok()).flatten()
}

/// A piece of somebody's text to be quoted in an error.
fn excerpt(text: &str) -> String {
    text.chars().take(64).collect()
}

/// What is wrong with a ticket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TicketError {
    /// Longer than any ticket.
    #[error("a ticket has at most {limit} characters")]
    Size {
        /// How many there may be.
        limit: usize,
    },
    /// Another scheme, or none.
    #[error("a ticket begins with fontana://")]
    Scheme,
    /// No slash after the port.
    #[error("the ticket has no session number: GROUP:PORT/TSI")]
    NoTsi,
    /// Not a session number.
    #[error("{0:?} is not a session number (0 to {max})", max = Tsi::MAX)]
    Tsi(String),
    /// No colon, or only those of an IPv6 address.
    #[error("the ticket has no port after {0:?}: GROUP:PORT/TSI, an IPv6 GROUP in brackets")]
    NoPort(String),
    /// Not a port number.
    #[error("{0:?} is not a port (1 to 65535)")]
    Port(String),
    /// Not an address.
    #[error("{0:?} is neither an IPv4 address nor an IPv6 address in brackets")]
    Address(String),
    /// An address with an interface of the host on which the ticket was written.
    #[error(
        "{0:?} names an interface; write the address without it and choose the interface apart"
    )]
    Zone(String),
    /// The address of nobody.
    #[error("{0} is no address that anyone sends from or to")]
    Unspecified(IpAddr),
    /// A source of another family.
    #[error("the source {source_address} and the group {group} are of different families")]
    Family {
        /// The source.
        source_address: IpAddr,
        /// The group.
        group: IpAddr,
    },
    /// Nobody sends from a group.
    #[error("the source {0} is a multicast address: SOURCE@GROUP, in this order")]
    MulticastSource(IpAddr),
    /// A source twice.
    #[error("the source {0} appears twice")]
    RepeatedSource(IpAddr),
    /// More sources than a receiver joins.
    #[error("a ticket has at most {limit} sources")]
    SourceCount {
        /// How many there may be.
        limit: usize,
    },
    /// The value of `key`.
    #[error("in key=: {0}")]
    Key(KeyError),
    /// The value of `manifest`.
    #[error("in manifest=: {0}")]
    Manifest(HexError),
    /// Not a number of channels, or too many groups.
    #[error("{0:?} is not a number of channels (2 to {MAX_CHANNELS})")]
    ChannelCount(String),
    /// Channels on addresses that are not groups, or of another family.
    #[error(
        "{group} cannot be a channel's group beside {first}: channels are multicast groups of one family"
    )]
    NotAGroup {
        /// The address.
        group: IpAddr,
        /// That of channel 0.
        first: IpAddr,
    },
    /// A group twice.
    #[error("two channels are on the group {0}")]
    RepeatedGroup(IpAddr),
    /// There are no such addresses.
    #[error("there are no {count} addresses from {first} on")]
    BeyondTheLastGroup {
        /// That of channel 0.
        first: IpAddr,
        /// Channels asked for.
        count: u8,
    },
    /// Channels said twice, or in both ways.
    #[error("the ticket says more than once what channels there are")]
    RepeatedChannels,
    /// A parameter twice.
    #[error("the parameter {0:?} appears twice")]
    RepeatedParameter(String),
    /// A parameter that this version does not know and dares not ignore.
    #[error("the parameter {0:?} is unknown: this ticket is for a later version")]
    UnknownParameter(String),
}
