//! The arguments of `fontana send`.

use super::order::{OrderArgument, parse_order};
use super::{MemoryArgument, SessionFormat, session_format};
use clap::{Args, ValueEnum, ValueHint};
use fontana::TornadoCode;
use fontana::net::{InterfaceError, InterfaceSelector};
use fontana::wire::{FluteVersion, MAX_CHANNELS, Tsi};
use fontana_console::talk::Talk;
use fontana_console::units::{
    parse_duration, parse_lifetime, parse_passes, parse_permille, parse_rate, parse_size,
};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Send files to a multicast group
///
/// Sends the source symbols once, then what receivers lack, who may join at any time, or new repair
/// symbols without end if none can say it. Stops when interrupted (Ctrl-C), after a time (--for),
/// when all are complete (--receivers), or after a finite amount (--push).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana send image.raw
  fontana send *.iso --rate 1G -i eth0
  fontana send photos --exclude '*.tmp'      a directory with its content
  find . -name '*.jpg' -print0 | fontana send --from-list -
  fontana send image.raw --push 30           everything once and 30 % repair symbols, then end
  fontana send image.raw --manifest image.manifest    resumes after a restart; on other hosts: mirrors
  tar c photos | fontana send - --name photos.tar    send it once, while it is made
  tar c photos | fontana send - --spool      read it to its end, then send it without end
  fontana send folder --watch                a new version after every change
  fontana send image.raw --sign key          receivers check the signature (fontana keygen key)
  fontana send image.raw --to 10.0.0.7:7701,10.0.0.8:7701    no multicast: a copy for each host")]
pub(crate) struct SendArguments {
    /// Files, directories or block devices to send, or - for standard input
    ///
    /// Receivers see the last component of each path, so it must be different for all. A directory
    /// is sent with its content: files with their holes, directories, symbolic links (not
    /// followed), modes and times. Owners, extended attributes, set-user-id bits and hard links are
    /// not sent. A block device is sent as a file if it is named here. Pipes, sockets, and devices
    /// in a directory are refused.
    #[arg(required_unless_present = "from_list", value_name = "PATH",
          value_hint = ValueHint::AnyPath)]
    pub(crate) files: Vec<PathBuf>,
    /// Send what a list names, too: a path on each line of FILE, or of standard input (-)
    ///
    /// Or paths with a NUL byte after each (find -print0). They are relative to the directory of
    /// this program, and have one schedule, which is made when the list ends. With --fcast an empty
    /// line is an order, too: what is named so far is sent, and what follows joins it. A path that
    /// cannot be opened ends a sender that has not begun; a running one goes on without it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) from_list: Option<PathBuf>,
    /// Give the file this name at receivers
    ///
    /// For a single file, or standard input (-), whose name is `stream` by default.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<OsString>,
    /// Read standard input (-) to its end into an unnamed file in DIR, then send that file
    ///
    /// DIR needs room for all of it. The default is the directory for temporary files: TMPDIR, or
    /// /tmp.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true,
          value_hint = ValueHint::DirPath)]
    pub(crate) spool: Option<Option<PathBuf>>,
    /// Begin a stream after this time: 10s, 1m; or when N receivers are there: 3
    ///
    /// A later receiver misses the beginning. By default a stream waits for its first receiver, or
    /// for all of --receivers. --for limits the wait. If receivers are not asked (--one-way,
    /// --open), a number is one of seconds, and a stream begins at once by default.
    #[arg(long, value_name = "TIME|N", value_parser = parse_wait)]
    pub(crate) wait: Option<WaitArgument>,
    /// Send only those files of a directory that match GLOB; may be repeated
    ///
    /// The syntax is that of .gitignore, relative to each directory that is sent: '*.jpg',
    /// 'docs/**', '/top-level'. Files that are named on the command line are always sent.
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,
    /// Exclude what matches GLOB in a directory; may be repeated
    ///
    /// Takes precedence over --include. A directory that matches is excluded with its content.
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Send to this multicast group or broadcast address, or a copy to each of these hosts
    ///
    /// The default is 239.255.77.1:7701, in the range for one organization (RFC 2365), whose
    /// addresses need no registration, or [ff15::7701]:7701 where there is no IPv4. The default
    /// port is 7701. Several hosts share the rate. Several groups are the channels of a layered
    /// session. A link-local host of IPv6 has a zone, the name of one of this host's interfaces:
    /// [fe80::1%eth0]. /N is the session's number (TSI), as in a ticket. By default it follows from
    /// the content, so that a ticket stays valid when the sender is restarted. With --flute and
    /// --fcast it is random. 0 is for --flute alone: some programs expect it, and others refuse it.
    #[arg(
        long,
        value_name = "GROUP:PORT[/N][,HOST:PORT...]",
        value_delimiter = ',',
        value_parser = parse_destination
    )]
    pub(crate) to: Vec<DestinationArgument>,
    /// Use this network interface: its name, its address, or its network (10.0.0.0/8)
    ///
    /// Given several times, a session is sent on each of them, with the rate of its own receivers
    /// and symbols of its own: a receiver on several networks adds them up. They share --memory.
    /// The default is the interface that the routing table gives for the group, or else the first
    /// one that carries multicast.
    #[arg(short = 'i', long = "interface", value_name = "NAME|ADDR|CIDR")]
    pub(crate) interfaces: Vec<InterfaceSelector>,
    /// Send this many bits per second, headers included: 100M; or what receivers get: 5M..1G
    ///
    /// MIN..MAX: as fast as the slowest receiver gets, between these rates. Receivers that get less
    /// than MIN are named, and get what they request. A receiver that lies slows the session down,
    /// so reports have to be authentic. It is not fair to TCP: beyond one network it needs
    /// --controlled-network. The default is as fast as the slowest receiver gets, up to 100M, which
    /// leaves room on a 1 Gbit/s network and on old switches that flood multicast. If no receiver
    /// reports within three seconds, it is a tenth of what the interface carries, up to 100M. Where
    /// none is asked, on this host, and with layers it is 100M. See docs/congestion.md.
    /// NAME=RATE,NAME=RATE: a constant one for each -i, as it is named there.
    #[arg(long, value_name = "RATE|MIN..MAX|NAME=RATE,...", value_parser = parse_rates)]
    rate: Option<RateArgument>,
    /// Let a sender that was late catch up at 1.25 times the rate over this window: 20ms, 5ms, 0
    ///
    /// A busy host wakes the sender late. Its packets then leave in bursts, of 25 ms of the rate at
    /// most with the default. 0 is for networks with small queues: lost time stays lost. At most
    /// 100ms. Layered sessions never catch up.
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = parse_burst)]
    pub(crate) burst: Duration,
    /// Serve receivers of different speed, each at the rate that its network can carry
    ///
    /// The session has layers, on several groups that begin with the group of --to. A receiver
    /// joins as many as its network carries, by one of these: webrc (RFC 3738, the default), rlc
    /// and flid-sl find that out, fair to other traffic, by joining and leaving. webrc chooses the
    /// number of its channels from the rate; webrc-fast has waves ten times as fast. fixed: the
    /// receiver's user decides (recv --max-rate).
    #[arg(long, value_name = "SCHEME", value_enum, num_args = 0..=1, require_equals = true,
          default_missing_value = "webrc")]
    pub(crate) layered: Option<LayeringArgument>,
    /// Send N layers of constant rates, or layers of these rates, the lowest first: 4, or 1M,1M,2M
    ///
    /// One group each, that begin with the group of --to; other groups: list them in --to. Of N
    /// layers each doubles the rate of those below it (1, 1, 2, 4, ...), and all together have the
    /// rate (--rate). The sum of rates is at most the rate. Without --layered the receiver's user
    /// decides how many it takes.
    #[arg(long, value_name = "N|RATE,...", value_parser = parse_layers)]
    pub(crate) layers: Option<LayersArgument>,
    /// Let packets pass this many routers, plus one
    ///
    /// The default keeps packets on this network, so that a mistake has little effect. More needs
    /// --controlled-network.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) ttl: u8,
    /// Assert that all networks that the packets can reach are yours and have room for the rate
    ///
    /// A session without congestion control does not yield to other traffic. It may leave this
    /// network (--ttl) only with this option (RFC 8085, section 4.1).
    #[arg(long)]
    pub(crate) controlled_network: bool,
    /// Send everything once and PERCENT repair symbols, then end
    ///
    /// Without it the sender runs until it is stopped. To survive a loss of p, give at least 100 *
    /// p / (100 - p) and a few more: 30 for 20 %. A stream ends in any case: by default it has as
    /// many repair symbols as receivers request, and in advance as many as they have requested of
    /// earlier fragments; 10 % while no receiver reports.
    #[arg(long, value_name = "PERCENT", value_parser = parse_permille)]
    pub(crate) push: Option<u32>,
    /// End after this time: 90, 90s, 10m, 2h
    ///
    /// With --receivers it ends before if all are complete, and otherwise with exit code 9. A
    /// stream with --wait N or --receivers must begin within this time, and after its end it waits
    /// for reports for no longer.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// Send the symbols in this order
    ///
    /// even (default): all blocks of all files advance together, so that a receiver may join at any
    /// time. space: blocks are shorter, and three quarters of each are sent together, so that
    /// receivers hold few incomplete blocks; it takes some more symbols. sequential[:PERCENT]: one
    /// block after the other, each with PERCENT repair symbols, for receivers that write blocks in
    /// order; the default of 10 compensates a loss of 8 %. cumulative: on layers, every symbol once
    /// before any is repeated, for --fec rs and tornado. random: each packet is of a random block.
    /// fcast:ORDER/ORG: as in FCAST's paper, ORDER is seq, rand or p_randL (one symbol in L is
    /// exchanged), ORG is org_1 (each layer sends all symbols) or org_2 (a segment). anticipated:N:
    /// fcast:rand/org_2, and the lowest N layers first send all source symbols, for receivers that
    /// are present from the beginning. Receivers need no option for it. See docs/schedules.md.
    #[arg(long, value_name = "ORDER", default_value = "even", value_parser = parse_order)]
    pub(crate) order: OrderArgument,
    /// Send plain FLUTE, for other programs: version 1 (RFC 3926, 3GPP, DVB), or 2 (RFC 6726)
    ///
    /// One object per file with its MD5, and no extensions of Fontana: no hashes, no signature, no
    /// packet numbers. Version 1 and no code (--fec) are the default, which most programs read.
    /// Programs of one version reject sessions of the other. `fontana recv --flute` accepts both.
    /// gzip: files that become shorter are compressed, and in version 2 long tables, too; not every
    /// program decompresses them. Compressed files of more than 256 KiB are in unnamed files in the
    /// directory for temporary files (TMPDIR, or /tmp). See docs/flute.md.
    #[arg(long, value_name = "VERSION[,gzip]", num_args = 0..=1, require_equals = true,
          default_missing_value = "1", value_parser = parse_flute)]
    pub(crate) flute: Option<FluteArgument>,
    /// Send FCAST (RFC 6968), for other programs: objects that describe themselves
    ///
    /// Long files are cut into slices of SIZE, 64K or 16M. Each is an object with its own name,
    /// position in the file and SHA-256, so that receivers need no table. No extensions of Fontana,
    /// and no signature. The default is about a block (--block-symbols): 13 MB. Shorter slices
    /// complete sooner, cost more symbols, and a header each of some 210 bytes and the name.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, num_args = 0..=1,
          require_equals = true)]
    pub(crate) fcast: Option<Option<u64>>,
    /// Protect the symbols with this code
    ///
    /// raptorq (RFC 6330) makes any number of different symbols. raptor (RFC 5053) makes 65 536 for
    /// a block, for receivers of 3GPP's services. rs (Reed-Solomon, RFC 5510) makes 255 for a block
    /// of 128 and repeats them. tornado:N makes N for each source symbol, 2 to 10, and repeats
    /// them: 2, the default, is enough for one sender and a receiver that misses up to 40 %; with N
    /// it may miss up to about 1 - 1.1 / N of them, and several senders repeat each other less, but
    /// decoding takes more symbols and memory (docs/tuning.md). lt is a fountain code that decodes
    /// fast and takes some per cent more symbols. lt-strict takes hardly more symbols, and more
    /// time. none repeats the source symbols. The default is raptorq, and none with --flute.
    #[arg(long, value_name = "CODE[:N]", value_parser = parse_fec)]
    pub(crate) fec: Option<Fec>,
    /// Cut objects into blocks of about N source symbols
    ///
    /// Longer blocks need fewer symbols in all; shorter ones decode faster and in less memory. The
    /// default of 10 000 costs 0.6 % at 10 % loss. A stream that receivers repair by requests has
    /// blocks of a twelfth of a second at its highest rate, and at least 1 000 symbols.
    #[arg(long, value_name = "N")]
    pub(crate) block_symbols: Option<u32>,
    /// Send symbols of this many bytes
    ///
    /// The default fits the interface's MTU.
    #[arg(long, value_name = "BYTES")]
    pub(crate) symbol_size: Option<u16>,
    /// Sign the session with the key in KEYFILE (fontana keygen)
    ///
    /// The ticket then names the public key, and receivers accept only what is signed with it.
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath)]
    pub(crate) sign: Option<PathBuf>,
    /// Announce the symbols by signed digests, so that receivers can drop forged ones
    ///
    /// For groups that strangers can send to. Receivers that know the key of --sign drop symbols
    /// that are not announced, while an attacker sends forged ones. Takes 2 % of the packets. With
    /// symbols of less than 1306 bytes it takes more. For sessions on one channel, and not for
    /// streams. See docs/guarantees.md.
    #[arg(long, requires = "sign")]
    pub(crate) symbol_digests: bool,
    /// Send as a mirror that the publisher has certified (fontana certify)
    ///
    /// Receivers that know the publisher's key accept this sender. KEYFILE of --sign is the
    /// mirror's own. Needs the manifest that the certificate is for (--manifest), and implies
    /// --symbol-digests.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
          requires_all = ["sign", "manifest"])]
    pub(crate) certificate: Option<PathBuf>,
    /// Encrypt every packet with the group key in FILE (fontana keygen --group)
    ///
    /// Receivers with the key (fontana recv --group-key) drop all packets that no member of the
    /// group has sent. Each member can send in the name of the others. All but the headers is
    /// encrypted: addresses, numbers and lengths stay visible. Do not continue a sender twice from
    /// one snapshot of a virtual machine: that breaks the cipher.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) group_key: Option<PathBuf>,
    /// Let everyone who hears the packets read them, and ask for no reports
    ///
    /// By default packets are encrypted for all who have the ticket, and the ticket is a secret.
    /// Without that, receivers need no ticket (fontana recv lists the sessions), and other programs
    /// that know FLUTE and RaptorQ can receive, too.
    #[arg(long)]
    pub(crate) open: bool,
    /// Draw another ticket for this content, or for the directory of --watch
    ///
    /// Who has the old one cannot receive any more. It is kept: later starts have the new one. See
    /// docs/guarantees.md.
    #[arg(long)]
    pub(crate) new_ticket: bool,
    /// Ask the receivers for nothing
    ///
    /// For data diodes, and wherever no receiver can answer. By default receivers say whether they
    /// are complete, if they can (docs/reports.md).
    #[arg(long)]
    pub(crate) one_way: bool,
    /// Let the signature expire after this time, if the sender no longer runs
    ///
    /// The sender renews it every third of the time. Receivers that know the key but not the
    /// manifest refuse what has expired (fontana recv --accept expired). 0: never.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "30d",
        value_parser = parse_lifetime,
        requires = "sign"
    )]
    pub(crate) expires: Duration,
    /// Send a new version whenever files in the directories have changed and settled
    ///
    /// They have settled when a changed file is unchanged for SETTLE (2 s by default): files that
    /// still change then are sent as they were, if they only grow, or left out. Receivers follow
    /// the key (fontana recv --watch): that of --sign, or one that follows from this host's key and
    /// the path. The ticket names the key and no manifest, and stays valid. The session's number
    /// follows from the key. The old version is sent until the new one is ready. Several such
    /// senders with one key need different numbers (--to). See docs/watch.md. With --flute there is
    /// no key: a file that has changed is another object in the next table, and no table says that
    /// it is complete. Give it a number (--to), so that receivers follow a restarted sender.
    #[arg(long, value_name = "SETTLE", value_parser = parse_duration, num_args = 0..=1,
          require_equals = true, default_missing_value = "2")]
    pub(crate) watch: Option<Duration>,
    /// With --watch: replace a version not before it was sent PASSES times, such as 1.5
    ///
    /// What receivers of the version before lack is sent first, and always before the version is
    /// replaced. A receiver without it needs about one pass, more with loss.
    #[arg(long, value_name = "PASSES", default_value = "0", value_parser = parse_passes, requires = "watch")]
    pub(crate) at_least: u32,
    /// Give the content this version
    ///
    /// Raise it when the same publisher sends newer content, so that receivers can tell which is
    /// newer.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) content_version: u64,
    #[command(flatten)]
    pub(crate) memory: MemoryArgument,
    /// Use at most this much disk space for copies of small files and for solved blocks; 0: none
    ///
    /// They are in an unnamed file in $TMPDIR, or in /var/tmp, unless that is in memory. The
    /// default is a quarter of the free space there. Without room for copies, a small file that
    /// changes while it is sent takes others with it, and each visit of a block solves it again.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) scratch: Option<u64>,
    /// Write the manifest to FILE, or send what an existing FILE describes
    ///
    /// The first sender writes FILE. A sender that finds it (after a restart, or on another host
    /// with a copy of it) sends repair symbols of the same objects, whatever its own options. A
    /// receiver adds up the symbols of all senders, and one ticket is for all. The files must be
    /// the same; those whose size and time agree are not read again before they are
    /// sent, and another byte in them ends it with exit code 8.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) manifest: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reports: ReportArguments,
    /// Write the ticket to FILE before the first packet; for several hosts a line each
    ///
    /// FILE is replaced atomically: a program that reads it finds a whole ticket.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ticket_file: Option<PathBuf>,
    /// Say what would be sent, and send nothing; with --json every file, directory and link
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// The options about reports of receivers.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Ask the receivers for reports: which of them are complete, and what they lack
    ///
    /// This is the default of a session with one ticket that is a secret. Receivers whose ticket
    /// names its key answer with UDP packets to ADDRESS:PORT of this host, unless they are started
    /// with --one-way. The default is the address that packets are sent from, and the first free
    /// port from 7703 on. With --open it needs --sign. See docs/reports.md.
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, require_equals = true)]
    pub(crate) ask: Option<Option<SocketAddr>>,
    /// With --rate MIN..MAX: follow the receivers that --receivers names also below MIN
    ///
    /// The rate is then that of the slowest of these, until they have finished; it does not fall
    /// below 16 kbit/s. Other receivers that get less than MIN are left behind.
    #[arg(long, requires_all = ["rate", "receivers"])]
    pub(crate) wait_for_all: bool,
    /// Send nothing again later than this after the source symbols, and end: 90, 90s, 10m, 2h
    ///
    /// What receivers lack then, they do not get. Without it, the age of the content has no limit.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) max_age: Option<Duration>,
    /// End when this many receivers are complete, or these; else with exit code 9
    ///
    /// NAMES are labels (recv --label; by default the names of hosts) with commas: rack-1,rack-2,
    /// or with one after a single name. FILE has a line for each receiver: its label, and perhaps
    /// ed25519:KEY, the key with which it signs (recv --identity). The exit code is 0 only if all
    /// of them are complete and verified. With --for it ends then in any case. With --watch it goes
    /// on with the next version. A file whose name is a number or has a comma: ./12.
    #[arg(long, value_name = "COUNT|NAMES|FILE", value_parser = parse_receivers,
          value_hint = ValueHint::FilePath)]
    pub(crate) receivers: Option<ReceiversArgument>,
    /// Obey receivers although nothing authenticates their reports
    ///
    /// Any host that can reach this one can then claim to be a receiver that is complete
    /// (--receivers) or too slow (--rate MIN..MAX). Not needed without --open, or with a key in
    /// every line of the file of --receivers.
    #[arg(long)]
    pub(crate) trust_reports: bool,
    /// Write the state of all receivers to FILE once a second, as JSON
    ///
    /// FILE is replaced atomically. It has the fields of the events `roll_call` and `report`
    /// (docs/events.md).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) status_file: Option<PathBuf>,
    /// Run PROGRAM when all expected receivers are complete
    ///
    /// Takes the rest of the command line as PROGRAM and its arguments, without a shell. If it
    /// fails, the exit code is 5.
    #[arg(long, value_name = "PROGRAM [ARG]...", num_args = 1.., allow_hyphen_values = true,
          requires = "receivers", value_hint = ValueHint::ExecutablePath)]
    pub(crate) exec: Vec<OsString>,
}

impl ReportArguments {
    /// The first option that needs receivers that report.
    pub(crate) fn needed_by(&self) -> Option<&'static str> {
        let given = [
            (self.ask.is_some(), "--ask"),
            (self.receivers.is_some(), "--receivers"),
            (self.status_file.is_some(), "--status-file"),
            (self.max_age.is_some(), "--max-age"),
        ];
        given.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
    }
}

/// The rate of a session, in bits per second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RateArgument {
    Constant(u64),
    /// That of the slowest receiver.
    Between {
        least: u64,
        most: u64,
    },
    /// That of the session on each of several interfaces. There is at least one.
    Each(Vec<NamedRate>),
}

/// The rate of the session on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedRate {
    pub(crate) interface: InterfaceSelector,
    pub(crate) bits_per_second: u64,
}

/// What a stream waits for before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitArgument {
    Time(Duration),
    /// Receivers if the sender asks for reports, and seconds otherwise.
    Number(u32),
}

impl WaitArgument {
    /// The time, if receivers are not counted.
    pub(crate) fn time(self) -> Duration {
        match self {
            Self::Time(time) => time,
            Self::Number(seconds) => Duration::from_secs(seconds.into()),
        }
    }
}

/// The receivers that are expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReceiversArgument {
    Count(u32),
    Names(String),
    File(PathBuf),
}

fn parse_receivers(text: &str) -> Result<ReceiversArgument, String> {
    if text.contains(',') && !text.contains('/') {
        return Ok(ReceiversArgument::Names(text.to_owned()));
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) || text.is_empty() {
        return Ok(ReceiversArgument::File(PathBuf::from(text)));
    }
    match text.parse() {
        Ok(count @ 1..=1_000_000) => Ok(ReceiversArgument::Count(count)),
        _ => Err("expect 1 to 1000000 receivers".to_owned()),
    }
}

impl SendArguments {
    /// The rate, or the highest one, in bits per second.
    pub(crate) fn rate(&self) -> u64 {
        let each = self.rates().iter().map(|rate| rate.bits_per_second);
        match self.rate {
            Some(RateArgument::Constant(rate) | RateArgument::Between { most: rate, .. }) => rate,
            _ => each.max().unwrap_or(fontana::Rate::DEFAULT.as_bits_per_second()),
        }
    }

    /// The rates that are named for interfaces.
    pub(crate) fn rates(&self) -> &[NamedRate] {
        match &self.rate {
            Some(RateArgument::Each(rates)) => rates,
            _ => &[],
        }
    }

    /// The rate, or the highest one, of the session on this interface, in bits per second.
    pub(crate) fn rate_on(&self, interface: Option<&InterfaceSelector>) -> u64 {
        let named = self.rates().iter().find(|rate| Some(&rate.interface) == interface);
        named.map_or_else(|| self.rate(), |rate| rate.bits_per_second)
    }

    /// The lowest rate of those between which the user lets it follow the receivers.
    pub(crate) fn least_rate(&self) -> Option<u64> {
        match self.rate {
            Some(RateArgument::Between { least, .. }) => Some(least),
            _ => None,
        }
    }

    /// Whether the user leaves the rate to the program, and the session can have one that follows
    /// its receivers.
    pub(crate) fn has_automatic_rate(&self) -> bool {
        self.rate.is_none() && !self.has_layers()
    }

    /// The number of the session, if the user gives it one.
    pub(crate) fn tsi(&self) -> Option<Tsi> {
        self.to.iter().find_map(|to| to.tsi)
    }

    pub(crate) fn has_layers(&self) -> bool {
        self.layered.is_some() || self.layers.is_some()
    }

    /// The number of networks with a session each. They share memory and scratch file.
    pub(crate) fn networks(&self) -> usize {
        self.interfaces.len().max(1)
    }

    pub(crate) fn format(&self) -> SessionFormat {
        session_format(self.flute.is_some(), self.fcast.is_some())
    }

    /// The code: without one, a session of FLUTE is for programs that know none.
    pub(crate) fn fec(&self) -> Fec {
        self.fec.unwrap_or(match self.flute {
            Some(_) => Fec::None,
            None => Fec::Raptorq,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fec {
    Raptorq,
    Raptor,
    Rs,
    Tornado(TornadoCode),
    Lt,
    LtStrict,
    None,
}

/// Rule for how many layers a receiver takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayeringArgument {
    Webrc,
    WebrcFast,
    Rlc,
    FlidSl,
    Fixed,
}

/// The layers of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LayersArgument {
    /// So many, each as fast as all below it.
    Count(u8),
    /// Bits per second of each, the lowest first.
    Rates(Vec<u64>),
}

impl LayersArgument {
    /// The number of layers; 255 if there are more.
    pub(crate) fn count(&self) -> u8 {
        match self {
            Self::Count(count) => *count,
            Self::Rates(rates) => u8::try_from(rates.len()).unwrap_or(u8::MAX),
        }
    }
}

/// Where a session is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DestinationArgument {
    /// An address, or a name, with or without a port.
    pub(crate) place: String,
    /// The number of the session, if it has one here.
    pub(crate) tsi: Option<Tsi>,
}

/// How files are sent in plain FLUTE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FluteArgument {
    pub(crate) version: FluteVersion,
    /// Compress files that become shorter.
    pub(crate) gzip: bool,
}

/// Parses a part of `--to`.
fn parse_destination(text: &str) -> Result<DestinationArgument, String> {
    let Some((place, number)) = text.split_once('/') else {
        return Ok(DestinationArgument { place: text.to_owned(), tsi: None });
    };
    match number.parse::<u32>() {
        Ok(number) => {
            Ok(DestinationArgument { place: place.to_owned(), tsi: Some(Tsi(number.into())) })
        }
        Err(_) => Err(format!("{number:?} is no session number: 0 to {}", u32::MAX)),
    }
}

/// Parses `--flute`: a version, `gzip`, or both with a comma.
fn parse_flute(text: &str) -> Result<FluteArgument, String> {
    let (version, gzip) = match text.strip_suffix("gzip") {
        Some("") => ("1", true),
        Some(version) => (version.trim_end_matches(','), true),
        None => (text, false),
    };
    let version = match version {
        "1" => FluteVersion::V1,
        "2" => FluteVersion::V2,
        _ => return Err("there are 1, 2, gzip, and both with a comma: 2,gzip".to_owned()),
    };
    Ok(FluteArgument { version, gzip })
}

/// Parses `--rate`.
fn parse_rates(text: &str) -> Result<RateArgument, String> {
    if text.contains('=') {
        return text
            .split(',')
            .map(parse_named_rate)
            .collect::<Result<_, _>>()
            .map(RateArgument::Each);
    }
    let Some((least, most)) = text.split_once("..") else {
        return parse_rate(text).map(RateArgument::Constant);
    };
    match (parse_rate(least)?, parse_rate(most)?) {
        (least, most) if least <= most => Ok(RateArgument::Between { least, most }),
        _ => Err("the lowest rate comes first: 5M..1G".to_owned()),
    }
}

/// Parses one of the rates of several interfaces.
fn parse_named_rate(text: &str) -> Result<NamedRate, String> {
    let (name, rate) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} names no interface: eth0=1G,wlan0=20M"))?;
    let interface = name.parse().map_err(|error: InterfaceError| error.to_string())?;
    Ok(NamedRate { interface, bits_per_second: parse_rate(rate)? })
}

/// Parses `--fec`.
fn parse_fec(text: &str) -> Result<Fec, String> {
    /// Any value works, but mirrors must have the same one.
    const SEED: u64 = 0;
    if let Some(factor) = text.strip_prefix("tornado:") {
        let code = factor.parse().ok().map(|factor| TornadoCode::new(factor, SEED));
        return match code {
            Some(Ok(code)) => Ok(Fec::Tornado(code)),
            _ => Err("tornado makes 2 to 10 symbols for each source symbol: tornado:4\nfor more \
                      different symbols: raptorq"
                .to_owned()),
        };
    }
    Ok(match text {
        "raptorq" => Fec::Raptorq,
        "raptor" => Fec::Raptor,
        "rs" => Fec::Rs,
        "tornado" => Fec::Tornado(TornadoCode::Z),
        "lt" => Fec::Lt,
        "lt-strict" => Fec::LtStrict,
        "none" => Fec::None,
        _ => {
            return Err(
                "there is no such code; there are raptorq, raptor, rs, tornado, tornado:N, \
                        lt, lt-strict and none"
                    .to_owned(),
            );
        }
    })
}

/// Parses `--layers`: a number, or rates.
fn parse_layers(text: &str) -> Result<LayersArgument, String> {
    let layers = match text.parse() {
        Ok(count) => LayersArgument::Count(count),
        Err(_) => LayersArgument::Rates(text.split(',').map(parse_rate).collect::<Result<_, _>>()?),
    };
    match layers.count() {
        1..=MAX_CHANNELS => Ok(layers),
        _ => Err(format!("a session has 1 to {MAX_CHANNELS} layers")),
    }
}

/// A peak window.
fn parse_burst(text: &str) -> Result<Duration, String> {
    let window = parse_duration(text)?;
    if window > fontana::MAX_PEAK_WINDOW {
        return Err(format!("a burst is at most {}ms", fontana::MAX_PEAK_WINDOW.as_millis()));
    }
    Ok(window)
}

/// A time, or a number without a unit.
fn parse_wait(text: &str) -> Result<WaitArgument, String> {
    match text.parse() {
        Ok(number) if number <= MAX_AWAITED => Ok(WaitArgument::Number(number)),
        _ => parse_duration(text).map(WaitArgument::Time).map_err(|error| {
            format!("{error}; wait for a time: --wait 10s, or for receivers: --wait 3")
        }),
    }
}

/// Receivers that a stream waits for, at most: as many as a sender remembers.
const MAX_AWAITED: u32 = 1 << 16;
