//! Tickets: one line of text with everything that a receiver needs to join a session.

use crate::channels::ChannelGroups;
use crate::congestion::MAX_CHANNELS;
use crate::hash::{Hash, HexError};
use crate::id::Tsi;
use crate::key::{KeyError, PublicKey};
use crate::secret::{TicketSecret, TicketSecretError};
use crate::web::{WebAddress, WebAddressError};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

const SCHEME: &str = "fontana://";
/// Longest ticket in characters. One with the largest number of sources, groups and mirrors has
/// about 7 900.
const MAX_SIZE: usize = 8192;

/// Address of a session, with the key or hash that authenticates it.
///
/// ```text
/// fontana://[SOURCE{,SOURCE}@]GROUP:PORT/TSI[?key=HEX][&manifest=HEX][&secret=SECRET][&ask=PORT][&near=SOURCE][&format=flute|fcast][&channels=N|&groups=GROUP{,GROUP}]{&web=URL}
/// ```
/// `SOURCE` and `GROUP` are addresses, IPv6 in brackets; `HEX` is 64 hexadecimal digits, `SECRET`
/// 22 characters of base64url. A session of several channels gives their number (on consecutive
/// groups) or the groups of channels 1, 2, ... `docs/wire.md` has the exact grammar.
///
/// ```
/// use fontana_wire::{Ticket, Tsi};
///
/// let ticket: Ticket = "fontana://10.0.0.7@232.1.2.3:7701/5".parse()?;
/// assert_eq!(ticket.tsi, Tsi(5));
/// assert_eq!(ticket.to_string(), "fontana://10.0.0.7@232.1.2.3:7701/5");
/// # Ok::<(), fontana_wire::TicketError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Source addresses from which a receiver joins the group; empty: any source. All are of the
    /// group's family, none is repeated, and there are at most [`Ticket::MAX_SOURCES`].
    pub sources: Vec<IpAddr>,
    /// Destination of the packets: a multicast group, or a broadcast or unicast address where
    /// multicast is not available.
    pub group: IpAddr,
    /// UDP port, not 0.
    pub port: u16,
    /// Session identifier.
    pub tsi: Tsi,
    /// Key of the publisher that must have signed the session head.
    pub key: Option<PublicKey>,
    /// Hash of the manifest that the session must have.
    pub manifest: Option<Hash>,
    /// What the key of the session's packets follows from. Its text is a secret then.
    pub secret: Option<TicketSecret>,
    /// Port on which the sender collects reports, not 0: it asks receivers for them by roll calls,
    /// which have its whole address.
    pub ask: Option<u16>,
    /// Address of one of the senders, as a hint for the choice of the interface where `sources`
    /// names none. Packets of other senders are received as well.
    pub near: Option<IpAddr>,
    /// The format of the session, if it is not Fontana's.
    pub format: Option<ForeignFormat>,
    /// Groups of all channels; more than one channel only if `group` is multicast. A receiver joins
    /// no other groups, regardless of what the session declares.
    pub channels: ChannelGroups,
    /// Mirrors: web servers that have the files. A receiver uses them only if its user says so, or
    /// last if the ticket has a secret. None is repeated, and there are at most
    /// [`WebAddress::MAX_COUNT`].
    pub web: Vec<WebAddress>,
}

/// A format of sessions that other programs have, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignFormat {
    /// FLUTE (RFC 6726, RFC 3926).
    Flute,
    /// FCAST (RFC 6968).
    Fcast,
}

impl ForeignFormat {
    /// All of them, and their names in a ticket.
    const NAMES: [(Self, &str); 2] = [(Self::Flute, "flute"), (Self::Fcast, "fcast")];

    fn parse(text: &str) -> Result<Self, TicketError> {
        let found = Self::NAMES.into_iter().find(|&(_, name)| name == text);
        found.map(|(format, _)| format).ok_or_else(|| TicketError::Format(excerpt(text)))
    }
}

impl fmt::Display for ForeignFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.into_iter().find(|(format, _)| format == self);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

impl Ticket {
    /// Largest number of sources. Ten is Linux's default for the sources of one group on a socket
    /// (igmp_max_msf); twice as many take two sockets.
    pub const MAX_SOURCES: usize = 20;

    /// A ticket of this session that says no more: from any source, on one channel.
    pub fn new(destination: SocketAddr, tsi: Tsi) -> Self {
        Self {
            sources: Vec::new(),
            group: destination.ip(),
            port: destination.port(),
            tsi,
            key: None,
            manifest: None,
            secret: None,
            ask: None,
            near: None,
            format: None,
            channels: ChannelGroups::default(),
            web: Vec::new(),
        }
    }

    /// Address and port of channel 0.
    pub fn destination(&self) -> SocketAddr {
        SocketAddr::new(self.group, self.port)
    }

    /// Where the senders that it names collect reports.
    pub fn collectors(&self) -> impl Iterator<Item = SocketAddr> {
        let port = self.ask.into_iter();
        port.flat_map(|port| self.sources.iter().map(move |&source| SocketAddr::new(source, port)))
    }

    /// The ticket without its secret, to be shown where others may read it.
    pub fn without_secret(&self) -> Self {
        Self { secret: None, ..self.clone() }
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
        if let Some(secret) = self.secret {
            write!(f, "{}secret={secret}", separator())?;
        }
        if let Some(port) = self.ask {
            write!(f, "{}ask={port}", separator())?;
        }
        if let Some(near) = self.near {
            write!(f, "{}near=", separator())?;
            write_addresses(f, &[near])?;
        }
        if let Some(format) = self.format {
            write!(f, "{}format={format}", separator())?;
        }
        match &self.channels {
            ChannelGroups::Consecutive(..=1) => {}
            ChannelGroups::Consecutive(count) => write!(f, "{}channels={count}", separator())?,
            ChannelGroups::Listed(others) => {
                write!(f, "{}groups=", separator())?;
                write_addresses(f, others)?;
            }
        }
        self.web.iter().try_for_each(|address| write!(f, "{}web={address}", separator()))
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
        let mut ticket = Self::new(parse_destination(destination)?, parse_tsi(tsi)?);
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
        let source = self.parse_source(text)?;
        if self.sources.contains(&source) {
            return Err(TicketError::RepeatedSource(source));
        }
        if self.sources.len() >= Self::MAX_SOURCES {
            return Err(TicketError::SourceCount { limit: Self::MAX_SOURCES });
        }
        self.sources.push(source);
        Ok(())
    }

    fn parse_source(&self, text: &str) -> Result<IpAddr, TicketError> {
        let source = parse_address(text)?;
        if source.is_ipv4() != self.group.is_ipv4() {
            return Err(TicketError::Family { source_address: source, group: self.group });
        }
        if source.is_multicast() {
            return Err(TicketError::MulticastSource(source));
        }
        Ok(source)
    }

    fn add_web(&mut self, address: WebAddress) -> Result<(), TicketError> {
        if self.web.contains(&address) {
            return Err(TicketError::RepeatedParameter("web".to_owned()));
        }
        if self.web.len() >= WebAddress::MAX_COUNT {
            return Err(TicketError::WebCount { limit: WebAddress::MAX_COUNT });
        }
        self.web.push(address);
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
            "secret" if self.secret.is_none() => {
                self.secret = Some(value.parse().map_err(TicketError::Secret)?);
            }
            "ask" if self.ask.is_none() => self.ask = Some(parse_port(value)?),
            "near" if self.near.is_none() => self.near = Some(self.parse_source(value)?),
            "format" if self.format.is_none() => self.format = Some(ForeignFormat::parse(value)?),
            "channels" if self.channels.count() == 1 => {
                self.channels = ChannelGroups::Consecutive(parse_channel_count(value)?);
                self.check_groups()?;
            }
            "groups" if self.channels.count() == 1 => {
                // One group too many is enough to detect an excess.
                let most = usize::from(MAX_CHANNELS);
                let others = value.split(',').take(most).map(parse_address);
                self.channels = ChannelGroups::Listed(others.collect::<Result<_, _>>()?);
                self.check_groups()?;
            }
            "web" => self.add_web(value.parse()?)?,
            "channels" | "groups" => return Err(TicketError::RepeatedChannels),
            "key" | "manifest" | "secret" | "ask" | "near" | "format" => {
                return Err(TicketError::RepeatedParameter(name.to_owned()));
            }
            _ => return Err(TicketError::UnknownParameter(excerpt(name))),
        }
        Ok(())
    }
}

impl Ticket {
    /// Checks that the channels can use these groups.
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
        // There are fewer groups only if the addresses overflow.
        let all = seen.len() == usize::from(count);
        all.then_some(()).ok_or(TicketError::BeyondTheLastGroup { first: self.group, count })
    }
}

/// Parses the number of channels: at least 2, because one is the default.
fn parse_channel_count(text: &str) -> Result<u8, TicketError> {
    let count = decimal(text).and_then(|count| u8::try_from(count).ok());
    count
        .filter(|count| (2..=MAX_CHANNELS).contains(count))
        .ok_or_else(|| TicketError::ChannelCount(excerpt(text)))
}

fn parse_destination(text: &str) -> Result<SocketAddr, TicketError> {
    let no_port = || TicketError::NoPort(excerpt(text));
    let (address, port) = text.rsplit_once(':').ok_or_else(no_port)?;
    // The text was an IPv6 address without a port: its last colon is inside the brackets.
    if port.ends_with(']') {
        return Err(no_port());
    }
    let group = parse_address(address)?;
    Ok(SocketAddr::new(group, parse_port(port)?))
}

fn parse_port(text: &str) -> Result<u16, TicketError> {
    let port = decimal(text).and_then(|port| u16::try_from(port).ok());
    port.filter(|&port| port != 0).ok_or_else(|| TicketError::Port(excerpt(text)))
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

/// Parses decimal digits without leading zeros, so that a number has one text form.
fn decimal(text: &str) -> Option<u64> {
    let canonical =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    canonical.then(|| text.parse().ok()).flatten()
}

/// The beginning of a received text, to be quoted in an error.
fn excerpt(text: &str) -> String {
    text.chars().take(64).collect()
}

/// Reason why a text is not a ticket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TicketError {
    /// A text that is too long.
    #[error("a ticket has at most {limit} characters")]
    Size {
        /// Largest number of characters.
        limit: usize,
    },
    /// A scheme other than `fontana://`.
    #[error("a ticket begins with fontana://")]
    Scheme,
    /// A missing session identifier: no slash after the port.
    #[error("the ticket has no session number: GROUP:PORT/TSI")]
    NoTsi,
    /// An invalid session identifier.
    #[error("{0:?} is not a session number (0 to {max})", max = Tsi::MAX)]
    Tsi(String),
    /// A missing port: no colon, or only those of an IPv6 address.
    #[error("the ticket has no port after {0:?}: GROUP:PORT/TSI, an IPv6 GROUP in brackets")]
    NoPort(String),
    /// An invalid port.
    #[error("{0:?} is not a port (1 to 65535)")]
    Port(String),
    /// An invalid address.
    #[error("{0:?} is neither an IPv4 address nor an IPv6 address in brackets")]
    Address(String),
    /// An address with a zone, which is an interface of the host on which the ticket was written.
    #[error(
        "{0:?} names an interface; write the address without it and choose the interface apart"
    )]
    Zone(String),
    /// The unspecified address.
    #[error("{0} is no address that anyone sends from or to")]
    Unspecified(IpAddr),
    /// A source of another address family than the group.
    #[error("the source {source_address} and the group {group} are of different families")]
    Family {
        /// Address of the source.
        source_address: IpAddr,
        /// Address of the group.
        group: IpAddr,
    },
    /// A multicast address as source.
    #[error("the source {0} is a multicast address: SOURCE@GROUP, in this order")]
    MulticastSource(IpAddr),
    /// A repeated source.
    #[error("the source {0} appears twice")]
    RepeatedSource(IpAddr),
    /// Too many sources.
    #[error("a ticket has at most {limit} sources")]
    SourceCount {
        /// Largest number of sources.
        limit: usize,
    },
    /// An invalid value of `key`.
    #[error("in key=: {0}")]
    Key(KeyError),
    /// An invalid value of `manifest`.
    #[error("in manifest=: {0}")]
    Manifest(HexError),
    /// An invalid value of `secret`.
    #[error("in secret=: {0}")]
    Secret(TicketSecretError),
    /// An unknown value of `format`.
    #[error("{0:?} is no format of a session (flute or fcast)")]
    Format(String),
    /// An invalid number of channels, or too many groups.
    #[error("{0:?} is not a number of channels (2 to {MAX_CHANNELS})")]
    ChannelCount(String),
    /// A channel's address that is not multicast, or of another family.
    #[error(
        "{group} cannot be a channel's group beside {first}: channels are multicast groups of one family"
    )]
    NotAGroup {
        /// The address.
        group: IpAddr,
        /// Address of channel 0.
        first: IpAddr,
    },
    /// A group that two channels share.
    #[error("two channels are on the group {0}")]
    RepeatedGroup(IpAddr),
    /// Too few addresses after the first group.
    #[error("there are no {count} addresses from {first} on")]
    BeyondTheLastGroup {
        /// Address of channel 0.
        first: IpAddr,
        /// Number of channels.
        count: u8,
    },
    /// An invalid value of `web`.
    #[error("in web=: {0}")]
    Web(#[from] WebAddressError),
    /// Too many mirrors.
    #[error("a ticket has at most {limit} mirrors")]
    WebCount {
        /// Largest number of mirrors.
        limit: usize,
    },
    /// Both `channels` and `groups`, or one of them twice.
    #[error("the ticket says more than once what channels there are")]
    RepeatedChannels,
    /// A repeated parameter.
    #[error("the parameter {0:?} appears twice")]
    RepeatedParameter(String),
    /// An unknown parameter. Ignoring it could be unsafe, so the ticket is refused.
    #[error("the parameter {0:?} is unknown: this ticket is for a later version")]
    UnknownParameter(String),
}
