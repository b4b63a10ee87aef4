//! The arguments of `fontana recv`.

use super::{MemoryArgument, SessionFormat, session_format};
use crate::address;
use clap::{Args, ValueEnum, ValueHint};
use fontana::net::InterfaceSelector;
use fontana::wire::{
    ForeignFormat, PublicKey, ReceiverLabel, Ticket, TicketError, WebAddress, WebAddressError,
    WebTicket, WebTicketError,
};
use fontana::{MirrorFile, MirrorFileError, Rate, Sharing, WebAfter};
use fontana_console::talk::Talk;
use fontana_console::units::{parse_duration, parse_permille, parse_rate, parse_size};
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Receive files from a multicast group
///
/// With a ticket: receive the session that it names. Without: list the open sessions on the group
/// and ask. A receiver sends nothing, with four exceptions: requests to mirrors, if it is given
/// mirrors, or a ticket with a secret names some; what it serves when it is complete
/// (--then-serve); what it shares with receivers of its network (--share); and answers to roll
/// calls that the ticket's key has signed: whether it is complete, and what it lacks. With
/// --one-way it sends nothing at all. A file gets its name when every byte of it is verified.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  fontana recv                           list the sessions, choose one
  fontana recv 'fontana://192.0.2.1@239.255.77.1:7701/5?manifest=...' -o /srv/images
  fontana recv -y -i eth0 --timeout 10m  the first session on eth0
  fontana recv 'fontana://...' --only '*.jpg'    only these files; list the names: --list
  fontana recv 'fontana://...' https://a.example/pub/    from a mirror, too
  fontana recv https://a.example/pub/ --key KEY    what KEY has signed there
  fontana recv 'fontana://...' --to - | tar x    unpack while it is received
  fontana recv 'fontana://...' --to /dev/sdb     write a disk image to its device
  fontana recv 'fontana://...?key=...' --watch -o /srv/images    every newer version
  fontana recv --flute -y                files of a plain FLUTE session, not authenticated
  fontana recv --fcast -y                files of an FCAST session, not authenticated")]
pub(crate) struct ReceiveArguments {
    /// Ticket that the sender printed, a file with it, or -; or a mirror, which says what it has
    ///
    /// Of several tickets, for several networks or hosts, it takes that of this host.
    /// Other users of this host may see a ticket on the command line, which may be a secret, and
    /// not one that is in a file or on standard input (-). A mirror says it by the file
    /// fontana.head (fontana publish, fontana serve). The publisher's key (--key) vouches for it.
    /// Without the key, its manifest is shown, and a person is asked.
    #[arg(value_name = "TICKET|FILE|URL")]
    pub(crate) named: Option<NamedTicket>,
    /// Receive from these mirrors as well: http://HOST/DIR/ or https://HOST/DIR/
    ///
    /// A mirror is a web server that has the files under their names. Ranges of them are requested
    /// of all mirrors at once, and every block is verified. Requests are sent only if a mirror is
    /// given here, with --mirrors, or if the ticket has a secret or names nothing but mirrors.
    /// Addresses of single files, such as presigned URLs, are taken too. See docs/mirrors.md.
    #[arg(value_name = "URL", requires = "named")]
    pub(crate) urls: Vec<MirrorArgument>,
    /// Use mirrors, also those that the ticket names: now, last, off, or from 30s or 90% on
    ///
    /// The group brings most of the content to all receivers at once, and the mirrors what is left:
    /// last, when nothing has arrived from the group for 10 seconds; from a time on; or once N
    /// percent is received, or as with last. Without it mirrors that are given as URL are used now.
    /// Without those, mirrors of a ticket that has a secret are used last, at public addresses and
    /// in the sender's network alone; those of other tickets for a group are not used.
    #[arg(long = "mirrors", value_name = "now|last|off|TIME|N%", requires = "named",
          value_parser = parse_mirrors)]
    pub(crate) mirrors: Option<MirrorsArgument>,
    /// Send this field in requests to the mirrors that are given as URL: 'NAME: VALUE'
    ///
    /// It is sent to their hosts alone, not to mirrors of the ticket, and not where a redirect
    /// leads. Other users of this host may see it; a password is better kept in a file: --netrc.
    #[arg(long = "header", value_name = "FIELD", requires = "named")]
    pub(crate) headers: Vec<String>,
    /// Read user names and passwords for mirrors from this file
    ///
    /// The file has the format of ftp and curl: machine HOST login NAME password WORD. Only its
    /// owner may read it.
    #[arg(long, value_name = "FILE", requires = "named", value_hint = ValueHint::FilePath)]
    pub(crate) netrc: Option<PathBuf>,
    /// Serve what is verified to other receivers while it is received, and all of it then
    ///
    /// Prints the ticket when content is accepted. When it is complete, it is served as fontana
    /// serve does, with fresh symbols, until the program is stopped. Anyone who reaches the address
    /// can read the files.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) then_serve: Option<SocketAddr>,
    /// Complete other receivers of this network, and be completed by them
    ///
    /// Receivers with --share send each other symbols of what the session no longer brings, also
    /// when the sender is gone: requests and symbols go to one group, and no router passes them on.
    /// What arrives is verified as everything is. Anyone in this network can read it, unless there
    /// is a --group-key. See docs/sharing.md.
    /// It sends at most RATE, 20 Mbit/s by default, and stays when it is complete, until no other
    /// receiver has asked for ten seconds. Without this option, a receiver with a secret ticket
    /// shares before it asks a sender in another network, and when the sender has gone.
    #[arg(long, value_name = "RATE", num_args = 0..=1, require_equals = true,
          default_missing_value = "20M", value_parser = parse_rate)]
    pub(crate) share: Option<u64>,
    /// Listen on this group if there is no ticket
    ///
    /// The default is that of send.
    #[arg(long, value_name = "GROUP:PORT")]
    pub(crate) group: Option<String>,
    /// Use this network interface: its name, its address, or its network (10.0.0.0/8)
    ///
    /// Given several times, the groups are joined on all of them: senders on different networks add
    /// up. The default is the interface that the routing table gives for the group, or else the
    /// first one that carries multicast.
    #[arg(short = 'i', long = "interface", value_name = "NAME|ADDR|CIDR")]
    pub(crate) interfaces: Vec<InterfaceSelector>,
    /// Write files to this directory
    #[arg(short, long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
    /// Write a stream, or the session's only file, to standard output (-), a device, or a file
    ///
    /// Standard output: every byte is verified before it is written, and nothing is written after a
    /// gap. All messages, and events (--json), then go to standard error. A device must not be in
    /// use. It is written in place after confirmation (--yes), and is read back as a whole before
    /// success is reported. So is a file, which must not exist without --existing replace. With
    /// --flute: a file, which gets its name when it is complete; --only chooses it if the session
    /// has several.
    #[arg(long, value_name = "-|DEVICE|FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) to: Option<PathBuf>,
    /// With --to: keep data that cannot be delivered yet in this directory
    ///
    /// Standard output needs as much room as the file is long, and for a stream twice --memory: a
    /// consumer that stops reading for longer than this lasts loses the stream. A device needs the
    /// room of its repair symbols. The default is the directory for temporary files: TMPDIR, or
    /// /tmp.
    #[arg(long, value_name = "DIR", requires = "to", value_hint = ValueHint::DirPath)]
    pub(crate) staging: Option<PathBuf>,
    /// Stay in the group until every block is verified
    ///
    /// For sessions that send everything once (send --push) where strangers may forge symbols. The
    /// wrong ones are found with symbols that arrive later. Otherwise a receiver leaves when it has
    /// enough symbols, and joins again if some of them turn out to be wrong.
    #[arg(long)]
    pub(crate) stay: bool,
    /// What to do about files in DIR that exist
    ///
    /// refuse (default): the reception fails. skip: those that are equal stay, and get their mode
    /// and time; others are refused. replace: others are replaced, and only the blocks that differ
    /// are received. Files are compared by hash, never by size or time. Small files that share a
    /// block with one that is missing are received, and then compared. With --flute: by length and
    /// MD5, or by name alone if the sender gives no MD5, which is said. With --fcast and --to:
    /// without comparing.
    #[arg(long, value_name = "WAY", value_enum, default_value_t)]
    pub(crate) existing: ExistingArgument,
    /// Give no file its name before all are complete
    ///
    /// Otherwise a file gets its name when its objects are complete. Small files share objects: if
    /// the reception ends before these are complete, each file gets its name of which no byte is
    /// missing, and the others are listed in the form of --only (exit code 3).
    #[arg(long)]
    pub(crate) all_or_nothing: bool,
    /// Append a line of JSON to FILE for each file that gets its name, and each complete version
    ///
    /// Lines have the file's name, length and BLAKE3 hash, the version, the manifest's hash, the
    /// session, the publisher's key, and the time (docs/events.md). Before FILE is longer than 10
    /// MB it is renamed to FILE.1; five such files are kept.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) audit: Option<PathBuf>,
    /// Delete what earlier versions of the publisher created in DIR and a complete one lacks
    ///
    /// Only files, links and empty directories that its versions created are deleted, also if they
    /// were changed since. Needs the publisher's key. With --flute: delete files that this session
    /// has written, or an earlier one with --delete or --watch, and that are as they were written,
    /// when the tables that named them have expired and later ones do not. See docs/flute.md.
    #[arg(long)]
    pub(crate) delete: bool,
    /// Receive only files and links that match GLOB; may be repeated
    ///
    /// The syntax is that of .gitignore, relative to the top of what is sent: '*.jpg', 'docs/**',
    /// '/photos/2026/'. Objects without a byte of such a file are not received. List the names:
    /// --list.
    #[arg(long, value_name = "GLOB")]
    pub(crate) only: Vec<String>,
    /// List the names in the session and receive nothing; with --json all of them
    ///
    /// Options of a reception have no effect, so that --list may be added to any command.
    /// With --flute it ends when a table says that it is complete, or two seconds after the last
    /// new file.
    #[arg(long)]
    pub(crate) list: bool,
    /// Take the first session that is received, and write to the device (--to), without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Accept only what this publisher signed, if the ticket does not name its key
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<PublicKey>,
    /// Receive only packets that a sender with the group key in FILE has sent
    ///
    /// All others are dropped, and counted. See docs/guarantees.md.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) group_key: Option<PathBuf>,
    /// Receive every newer version of the publisher until stopped, or N versions
    ///
    /// The directory remembers the newest version (.fontana-mark-KEY). Versions that are not newer
    /// are not received, also after a restart. Files of earlier versions are replaced; other files
    /// only with --existing replace. Files that a newer version does not contain stay. Equal files
    /// are not received. The ticket's manifest= is then ignored. See docs/watch.md. With --flute:
    /// receive what later tables announce, and later runs of the sender, until stopped.
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true,
          value_parser = clap::value_parser!(NonZeroU64))]
    pub(crate) watch: Option<Option<NonZeroU64>>,
    /// Run PROGRAM when everything is complete and verified, with --watch for every version
    ///
    /// Takes the rest of the command line as PROGRAM and its arguments, without a shell. The
    /// environment describes what was received: FONTANA_DIRECTORY, FONTANA_MANIFEST,
    /// FONTANA_VERSION, FONTANA_VERIFIED, FONTANA_FILES, FONTANA_BYTES, FONTANA_SESSION,
    /// FONTANA_LABEL. fontana waits for PROGRAM. If it fails, the exit code is 5.
    #[arg(long, value_name = "PROGRAM [ARG]...", num_args = 1.., allow_hyphen_values = true, value_hint = ValueHint::ExecutablePath)]
    pub(crate) exec: Vec<OsString>,
    /// Confine this process to the files that it needs, or fail; or do not
    ///
    /// Linux confines it by default, as far as the kernel can (Landlock and seccomp; all of it with
    /// Linux 6.12): it reaches its target directory, starts no program but that of --exec, and
    /// connects to nothing but mirrors. require: fail if the kernel cannot do all of it. off: do
    /// not confine it. See docs/guarantees.md.
    #[arg(
        long,
        value_name = "MODE",
        value_enum,
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub(crate) sandbox: SandboxArgument,
    /// Let the kernel refuse every system call that sends a packet, for data diodes
    ///
    /// Also to the program of --exec, which opens no sockets but those of this host. For a
    /// multicast group the kernel itself sends membership reports; for the address of a host it
    /// sends nothing. Names in --group are refused, because looking them up sends packets.
    #[arg(long)]
    pub(crate) one_way: bool,
    /// The name by which the sender knows this receiver
    ///
    /// At most 63 ASCII letters, digits, '.', '_' and '-'. The default is the name of this host.
    #[arg(long, value_name = "LABEL", value_parser = parse_label)]
    pub(crate) label: Option<ReceiverLabel>,
    /// Sign reports to the sender with the key in KEYFILE (fontana keygen)
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath)]
    pub(crate) identity: Option<PathBuf>,
    /// Accept what is refused otherwise: old, expired, or both with a comma
    ///
    /// old: a version that is older than the newest one in the directory. expired: what has expired
    /// by this host's clock. Only signatures expire (fontana send --expires), and only for
    /// receivers that know the key and not the manifest.
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        value_delimiter = ',',
        hide_possible_values = true
    )]
    pub(crate) accept: Vec<AcceptArgument>,
    /// Give up if the session is not complete after this time: 90, 90s, 10m, 2h
    ///
    /// By default there is no limit while packets arrive (--silence). A plain FLUTE session whose
    /// tables do not say that they are complete ends then, with success if nothing is missing.
    #[arg(long, value_name = "SECONDS", value_parser = parse_timeout)]
    pub(crate) timeout: Option<Duration>,
    /// Give up if no packet of the session arrives for this long; 0: never
    ///
    /// The default is 60, which covers a switch that learns the group and a sender that restarts.
    /// With --watch, and with mirrors alone, it is 0. A plain FLUTE session whose tables do not say
    /// that they are complete ends when nothing new is announced for this long, with success if
    /// nothing is missing.
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration)]
    pub(crate) silence: Option<Duration>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgument,
    /// Take at most this many bits per second of a layered session, and of all mirrors: 20M
    ///
    /// Mirrors together send no more than this rate, beside a session. The session's head states
    /// the rates of its layers. A session whose lowest layer is faster is refused.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub(crate) max_rate: Option<u64>,
    /// Accept at most this many bytes in one session: 10G
    ///
    /// Any host that can send to the group chooses the size of a session. Holes of files count with
    /// their length. The default is 32T: the disk is the limit.
    #[arg(long, value_name = "SIZE", default_value = "32T", value_parser = parse_max_size)]
    pub(crate) max_size: u64,
    /// Receive the files of a plain FLUTE session (RFC 6726); they are not authenticated
    #[arg(long)]
    pub(crate) flute: bool,
    /// Receive the files of an FCAST session (RFC 6968); they are not authenticated
    ///
    /// The session is complete when the sender's list of objects is complete and all of them are
    /// received.
    #[arg(long)]
    pub(crate) fcast: bool,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

impl ReceiveArguments {
    /// Whether this receiver answers the roll calls of its ticket's key.
    pub(crate) fn may_report(&self) -> bool {
        let is_asked =
            self.ticket().is_some_and(|ticket| ticket.key.is_some() && ticket.ask.is_some());
        let answers = self.format() == SessionFormat::Fontana && !self.list;
        is_asked && answers && !self.one_way
    }

    /// How it shares with other receivers of its site: as `--share` says. Without that it does if
    /// the ticket has a secret, so that strangers can neither read nor send.
    pub(crate) fn sharing(&self) -> Option<Sharing> {
        if let Some(rate) = self.share {
            let mut sharing = Sharing::default();
            sharing.rate = Rate::bits_per_second(rate);
            return Some(sharing);
        }
        let ticket = self.ticket()?;
        let is_plain = self.to.is_none() && self.watch.is_none() && !self.one_way;
        (ticket.secret.is_some() && self.may_report() && is_plain).then(Sharing::by_default)
    }

    /// Takes the format that the ticket names. Returns the argument that says the same.
    pub(crate) fn follow_ticket(&mut self) -> Option<&'static str> {
        let (given, id) = match self.ticket()?.format? {
            ForeignFormat::Flute => (&mut self.flute, "flute"),
            ForeignFormat::Fcast => (&mut self.fcast, "fcast"),
        };
        *given = true;
        Some(id)
    }

    /// The ticket of a session.
    pub(crate) fn ticket(&self) -> Option<&Ticket> {
        match &self.named {
            Some(NamedTicket::Session(ticket)) => Some(ticket),
            Some(NamedTicket::Web(_) | NamedTicket::Mirror(_)) | None => None,
        }
    }

    /// The same without what only a reception does: nothing is received to list the names.
    pub(crate) fn of_list(&self) -> Self {
        Self {
            urls: if self.ticket().is_some() { Vec::new() } else { self.urls.clone() },
            headers: if self.ticket().is_some() { Vec::new() } else { self.headers.clone() },
            mirrors: Some(MirrorsArgument::Off),
            then_serve: None,
            share: None,
            to: None,
            all_or_nothing: false,
            audit: None,
            delete: false,
            watch: None,
            exec: Vec::new(),
            ..self.clone()
        }
    }

    /// From when on mirrors are used beside a group. `None`: from the beginning.
    pub(crate) fn mirrors_after(&self) -> Option<WebAfter> {
        match self.mirrors {
            Some(MirrorsArgument::After(after)) => Some(after),
            Some(MirrorsArgument::Now | MirrorsArgument::Off) => None,
            None => self.ticket_with_mirrors().map(|_| LAST),
        }
    }

    /// The ticket whose mirrors are used last, although its user has not named them: a sealed one.
    /// Who has it has its secret from the sender.
    pub(crate) fn ticket_with_mirrors(&self) -> Option<&Ticket> {
        let is_said = self.mirrors.is_some() || !self.urls.is_empty();
        let is_refused = self.watch.is_some() || self.one_way;
        let has_manifest = self.format() == SessionFormat::Fontana;
        let ticket = self.ticket().filter(|_| !is_said && !is_refused && has_manifest)?;
        (ticket.secret.is_some() && !ticket.web.is_empty()).then_some(ticket)
    }

    /// Whether equal files of the directory stay.
    pub(crate) fn skips_existing(&self) -> bool {
        let compares = self.to.is_none() && self.format() != SessionFormat::Fcast;
        match self.existing {
            ExistingArgument::Refuse => false,
            ExistingArgument::Skip => true,
            ExistingArgument::Replace => compares,
        }
    }

    /// Whether files that exist, and differ, may be replaced.
    pub(crate) fn replaces_existing(&self) -> bool {
        self.existing == ExistingArgument::Replace
    }

    /// The format of the session to receive.
    pub(crate) fn format(&self) -> SessionFormat {
        session_format(self.flute, self.fcast)
    }
}

/// What to do about files that exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExistingArgument {
    #[default]
    Refuse,
    Skip,
    Replace,
}

/// Whether the process is confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxArgument {
    /// As far as the kernel can.
    #[default]
    Auto,
    Require,
    Off,
}

/// What a receiver accepts although it is not the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AcceptArgument {
    Old,
    Expired,
}

/// A ticket: of a session, or for mirrors alone. Or a mirror, without a ticket.
#[derive(Clone, Debug)]
pub(crate) enum NamedTicket {
    Session(Box<Ticket>),
    Web(WebTicket),
    Mirror(MirrorArgument),
}

impl NamedTicket {
    /// The ticket as text, to be shown: without its secret. `None` if it is a mirror.
    pub(crate) fn as_ticket(&self) -> Option<String> {
        match self {
            Self::Session(ticket) => Some(ticket.without_secret().to_string()),
            Self::Web(ticket) => Some(ticket.to_string()),
            Self::Mirror(_) => None,
        }
    }

    /// The one of several tickets that is for this host: a sender on several networks, or to
    /// several hosts, has one for each.
    fn of_several(tickets: &[&str]) -> Result<Self, String> {
        let sessions = tickets.iter().map(|ticket| ticket.parse());
        let sessions = sessions.collect::<Result<Vec<Ticket>, TicketError>>();
        let sessions = sessions.map_err(|error| error.to_string())?;
        let is_here = |ticket: &Ticket| address::is_for_this_host(ticket);
        match sessions.into_iter().find(is_here) {
            Some(ticket) => Ok(Self::Session(Box::new(ticket))),
            None => Err(format!(
                "these are {} tickets, and this host is in no network of their senders; give the \
                 one for this network (head -1 FILE has the first)",
                tickets.len()
            )),
        }
    }

    /// Reads a ticket from this file, or from standard input (-).
    fn in_file(path: &str) -> Result<Self, String> {
        /// More than a ticket has.
        const MAX_BYTES: u64 = 16 << 10;
        let mut text = String::new();
        let read = match path {
            "-" => io::stdin().lock().take(MAX_BYTES).read_to_string(&mut text),
            path => File::open(path).and_then(|it| it.take(MAX_BYTES).read_to_string(&mut text)),
        };
        match read {
            Ok(_) if text.contains("://") => text.parse(),
            Ok(_) => Err("there is no ticket in it: a ticket begins with fontana://".to_owned()),
            Err(error) => Err(format!("{error}; a ticket begins with fontana://")),
        }
    }
}

impl fmt::Display for NamedTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(ticket) => ticket.fmt(f),
            Self::Web(ticket) => ticket.fmt(f),
            Self::Mirror(mirror) => mirror.address().fmt(f),
        }
    }
}

impl FromStr for NamedTicket {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.contains("://") {
            return Self::in_file(text);
        }
        // The command that a sender has printed may be around it.
        let words = text.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
        let tickets: Vec<_> = words.filter(|word| word.contains("://")).collect();
        let [text] = tickets[..] else { return Self::of_several(&tickets) };
        if text.starts_with("http://") || text.starts_with("https://") {
            return text.parse().map(Self::Mirror);
        }
        if WebTicket::is_meant(text) {
            let ticket = text.parse().map_err(|error: WebTicketError| error.to_string())?;
            return Ok(Self::Web(ticket));
        }
        let ticket = text.parse().map_err(|error: TicketError| error.to_string())?;
        Ok(Self::Session(Box::new(ticket)))
    }
}

/// When nothing arrives from the group.
const LAST: WebAfter = WebAfter::Permille(1_000);

/// From when on mirrors are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MirrorsArgument {
    Now,
    Off,
    After(WebAfter),
}

/// A mirror on the command line.
#[derive(Clone, Debug)]
pub(crate) enum MirrorArgument {
    /// It has the files of the content under their names.
    Directory(WebAddress),
    /// One file.
    File(MirrorFile),
}

impl MirrorArgument {
    /// The address by which the mirror is reported: of the directory, or of the server.
    pub(crate) fn address(&self) -> &WebAddress {
        match self {
            Self::Directory(address) => address,
            Self::File(file) => file.server(),
        }
    }
}

impl FromStr for MirrorArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.ends_with('/') {
            let address = text.parse().map_err(|error: WebAddressError| error.to_string())?;
            return Ok(Self::Directory(address));
        }
        text.parse().map(Self::File).map_err(|error: MirrorFileError| error.to_string())
    }
}

/// Parses `--mirrors`: a word, a time, or a percentage.
fn parse_mirrors(text: &str) -> Result<MirrorsArgument, String> {
    let after = match text {
        "now" => return Ok(MirrorsArgument::Now),
        "off" => return Ok(MirrorsArgument::Off),
        "last" => LAST,
        _ if !text.ends_with('%') => WebAfter::Time(
            parse_duration(text)
                .map_err(|_| "there are now, last, off, a time and N%".to_owned())?,
        ),
        _ => match parse_permille(text)? {
            permille if permille <= 1_000 => WebAfter::Permille(permille),
            _ => return Err("there are 100 % to receive".to_owned()),
        },
    };
    Ok(MirrorsArgument::After(after))
}

/// Parses `--timeout`, and refuses 0, which ends before a packet can arrive.
fn parse_timeout(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("nothing arrives in 0 s; for no limit, leave it out".to_owned()),
        timeout => Ok(timeout),
    }
}

/// Parses `--label`, and refuses an empty one.
fn parse_label(text: &str) -> Result<ReceiverLabel, String> {
    match text.parse::<ReceiverLabel>() {
        Ok(label) if !label.is_empty() => Ok(label),
        Ok(_) => Err("for no name, leave it out".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses `--max-size`, and refuses 0, which accepts no session.
fn parse_max_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0 => Err("no session has 0 bytes; for no limit but the disk, leave it out".to_owned()),
        size => Ok(size),
    }
}
