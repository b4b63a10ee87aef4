//! `fontana send`.

use super::{
    InterfaceArgument, MemoryArgument, ProfileArgument, SessionFormat, Talk, session_format,
};
use crate::units::{parse_duration, parse_permille, parse_rate, parse_size};
use clap::{Args, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Pour files into a multicast group
///
/// Sends the source symbols once and fresh repair symbols ever after, so that receivers may join
/// at any time; stops when it is told to (Ctrl-C, --duration), or after a finite amount (--push).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana send image.raw
  fontana send *.iso --rate 1G -i eth0
  fontana send photos --exclude '*.tmp'      a directory with all that is in it
  fontana send image.raw --push 30           everything once and 30 % repair symbols, then end
  fontana send image.raw --manifest image.manifest    goes on after a restart; on other hosts: mirrors
  tar c photos | fontana send - --name photos.tar    send it while it is made, once
  tar c photos | fontana send - --spool      read it all, then pour it for ever
  fontana send folder --watch --sign key     every state of it that has come to rest
  fontana send image.raw --sign key          receivers check the signature (fontana keygen key)
  fontana send image.raw --to 10.0.0.7:7701,10.0.0.8:7701    no multicast: a copy for each host")]
pub(crate) struct SendArguments {
    /// Files and directories to send, or - for standard input
    ///
    /// Receivers see the last component of each path, so it must be different for all. A directory
    /// is sent with all that is in it: files with their holes, directories, symbolic links (never
    /// followed), modes and times. Owners, extended attributes, set-user-id bits and which files
    /// are hard links to each other are not kept; devices, pipes and sockets are refused.
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) files: Vec<PathBuf>,
    /// Name that receivers know the file by, instead of its own
    ///
    /// For a single file, or standard input (-), which is `stream` if nothing else is said.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<OsString>,
    /// Read standard input (-) to its end into a file without a name in DIR, then send that
    ///
    /// DIR has to have room for all of it. By default that for temporary files: TMPDIR, or /tmp.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true,
          value_hint = ValueHint::DirPath)]
    pub(crate) spool: Option<Option<PathBuf>>,
    /// Announce a stream for so long before it begins: 10, 10s, 1m
    ///
    /// So that receivers can be started: one that comes later has missed the beginning. A time, not
    /// a number of receivers: they send nothing, so nobody can count them.
    #[arg(long, value_name = "TIME", value_parser = parse_wait)]
    pub(crate) wait: Option<Duration>,
    /// Repair symbols of a stream, in per cent of its source symbols
    ///
    /// A stream is sent once: receivers survive a loss of P / (100 + P), 9 % by default, and lose
    /// the stream where more is lost of a fragment.
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = parse_permille)]
    pub(crate) repair: u32,
    /// Of the files in a directory, send only those that match GLOB; may be repeated
    ///
    /// Patterns are those of .gitignore, relative to each directory that is sent: '*.jpg',
    /// 'docs/**', '/top-level'. What is named itself is sent in any case.
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,
    /// Of what is in a directory, leave out what matches GLOB; may be repeated
    ///
    /// Wins over --include. A directory that matches is left out with all that is in it.
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Multicast group, broadcast address, or hosts that get a copy each
    ///
    /// The default is in the range for one organization (RFC 2365), where nobody has to ask for an
    /// address. The port may be left out: 7701. Several hosts share the rate. Several groups are
    /// the channels of a layered session.
    #[arg(
        long,
        value_name = "GROUP:PORT[,HOST:PORT...]",
        value_delimiter = ',',
        default_value = "239.255.77.1:7701"
    )]
    pub(crate) to: Vec<String>,
    #[command(flatten)]
    pub(crate) interface: InterfaceArgument,
    /// Most bits per second on the wire, headers included: 100M, 1.5G
    ///
    /// The default leaves room on a 1 Gbit/s network and on old switches that flood multicast.
    #[arg(long, value_name = "RATE", default_value = "100M", value_parser = parse_rate)]
    pub(crate) rate: u64,
    /// Serve receivers of different speed, each at the rate that its network has to spare
    ///
    /// A session in layers, on many groups from that of --to on; receivers join those they can
    /// take. What decides is webrc unless --congestion-control says otherwise.
    #[arg(long)]
    pub(crate) layered: bool,
    /// Layers of rates that stay the same: N channels, on as many groups from that of --to on
    ///
    /// Each layer doubles what the layers below it have together (1, 1, 2, 4, ...), all have the
    /// rate; a receiver takes as many as it can. Other rates: --layers. Other groups: list them in
    /// --to.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) channels: Option<u8>,
    /// Rates of the layers, the lowest first: 1M,1M,2M
    ///
    /// One for each channel; together at most the rate (--rate).
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', value_parser = parse_rate)]
    pub(crate) layers: Vec<u64>,
    /// What decides how much of the rate a receiver takes
    ///
    /// webrc (RFC 3738), rlc and flid-sl: what its network has to spare, fair to other traffic,
    /// found by joining and leaving; webrc has channels of its own, as many as the rate takes, and
    /// webrc-fast ten times as fast waves. fixed: whoever runs it (recv --max-rate, --max-layers).
    /// none: there are no layers. By default webrc with --layered, fixed with --channels or
    /// --layers, and none else.
    #[arg(long, value_name = "SCHEME", value_enum)]
    pub(crate) congestion_control: Option<CongestionScheme>,
    /// Routers that packets may pass, plus one
    ///
    /// The default keeps them on this network: a mistake stays small. More needs
    /// --controlled-network.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) ttl: u8,
    /// All networks that the packets can reach are yours, and have room for the rate
    ///
    /// A session without congestion control yields to nobody. It leaves this network (--ttl) only
    /// if this is said (RFC 8085, section 4.1).
    #[arg(long)]
    pub(crate) controlled_network: bool,
    /// Number of the session
    ///
    /// By default it follows from the content, so that a ticket stays valid when the sender is
    /// restarted; with --flute and --fcast it is drawn at random.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=0xFFFF_FFFF))]
    pub(crate) tsi: Option<u64>,
    /// Send everything once and PERCENT repair symbols, then end
    ///
    /// Without it the sender goes on until it is stopped. To survive a loss of p, take at least
    /// 100 * p / (100 - p) and a few more: 30 for 20 %.
    #[arg(long, value_name = "PERCENT", value_parser = parse_permille)]
    pub(crate) push: Option<u32>,
    /// End after so long: 90, 90s, 10m, 2h
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// One block after the other, each with PERCENT repair symbols
    ///
    /// For receivers that write blocks in order. By default all blocks of all files advance
    /// together, so that a receiver may join at any time and waits for none in particular. 10 %
    /// repair symbols bridge a loss of 8 %.
    #[arg(long, value_name = "PERCENT", value_parser = parse_permille, num_args = 0..=1,
          require_equals = true, default_missing_value = "10")]
    pub(crate) sequential: Option<u32>,
    /// What to be good at
    ///
    /// space has shorter blocks, and three quarters of each come together, so that receivers have
    /// few under way; it takes some more symbols. cpu is a matter of receivers (recv --profile),
    /// who should be told the same in any case.
    #[arg(long, value_name = "PROFILE", value_enum, default_value_t = ProfileArgument::Speed,
          conflicts_with = "sequential")]
    pub(crate) profile: ProfileArgument,
    /// Plain FLUTE (RFC 6726), for other programs
    ///
    /// One object per file and nothing of our own: no hashes, no signature, no packet numbers.
    #[arg(long, conflicts_with_all = ["sign", "content_version"])]
    pub(crate) flute: bool,
    /// FCAST (RFC 6968), for other programs: objects that describe themselves
    ///
    /// Long files are cut into slices, each an object with its own name, place in the file and
    /// SHA-256; nobody needs a table. Nothing of our own, and no signature.
    #[arg(long, conflicts_with_all = ["flute", "sign", "content_version", "manifest", "mirror", "watch"])]
    pub(crate) fcast: bool,
    /// With --fcast: most bytes of a file in one object: 64K, 16M
    ///
    /// By default about a block (--block-symbols): 13 MB. Shorter ones are ready sooner and cost
    /// more symbols, and a header each, of some 210 bytes and the name.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = "fcast")]
    pub(crate) slice: Option<u64>,
    /// Code to protect the symbols with
    ///
    /// raptorq (RFC 6330) makes as many different symbols as anybody wants; rs (Reed-Solomon, RFC
    /// 5510) makes 255 for a block of 128 and repeats them; tornado makes two for each source
    /// symbol (--stretch) and repeats them; lt is a fountain that is decoded fast and takes some
    /// per cent more symbols; lt-strict takes hardly more, and longer; none repeats the source
    /// symbols.
    #[arg(long, value_name = "CODE", value_enum, default_value_t = Fec::Raptorq)]
    pub(crate) fec: Fec,
    /// With --fec tornado: so many symbols for each source symbol before they are repeated, 2 to 10
    ///
    /// By default 2, which is enough for a receiver that misses up to 40 % and for one sender. With
    /// N a receiver may miss up to about 1 - 1.1 / N of them, and several senders repeat each other
    /// less; it takes more symbols to decode, and both sides more memory: see docs/tuning.md.
    #[arg(long, value_name = "N")]
    pub(crate) stretch: Option<u8>,
    /// Source symbols per block, about
    ///
    /// Longer blocks need fewer symbols in all; shorter ones are decoded faster and in less
    /// memory. 10 000 cost 0.6 % at 10 % loss.
    #[arg(long, value_name = "N", default_value_t = fontana::DEFAULT_BLOCK_SYMBOLS)]
    pub(crate) block_symbols: u32,
    /// Bytes per symbol
    ///
    /// By default what fits the interface's MTU.
    #[arg(long, value_name = "BYTES")]
    pub(crate) symbol_size: Option<u16>,
    /// Sign the session with the key in KEYFILE (fontana keygen)
    ///
    /// The ticket then names the public key, and receivers take nothing that is not signed with
    /// it.
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath)]
    pub(crate) sign: Option<PathBuf>,
    /// Send the directories as they change: a new version whenever they have come to rest
    ///
    /// Needs --sign: receivers follow the key (fontana recv --watch). The ticket names the key and
    /// no manifest, and stays valid; so does the session's number, which follows from the key. The
    /// old version is sent until the new one is ready. Several such senders with one key need
    /// different --tsi. See docs/watch.md.
    #[arg(long, conflicts_with_all = ["flute", "manifest", "mirror", "dry_run", "content_version"])]
    pub(crate) watch: bool,
    /// With --watch: how long nothing may have changed before a version is made
    #[arg(long, value_name = "TIME", default_value = "2", value_parser = parse_duration, requires = "watch")]
    pub(crate) settle: Duration,
    /// With --watch: look for changes every so often, where the system's word does not reach
    ///
    /// Network file systems tell of nobody's changes but this host's.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "watch")]
    pub(crate) poll: Option<Duration>,
    /// Version of the content
    ///
    /// Raise it when the same publisher sends newer content, so that the newer one can be told.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) content_version: u64,
    #[command(flatten)]
    pub(crate) memory: MemoryArgument,
    /// Write what is sent to FILE, or go on with what FILE says
    ///
    /// The first sender writes FILE. One that finds it (after a restart, or on another host with a
    /// copy of it) sends repair symbols of the same objects, whatever its own defaults: what
    /// receivers hear of all of them adds up, and one ticket is for all. The files must be the
    /// same; those whose size and time agree are not read again.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "flute")]
    pub(crate) manifest: Option<PathBuf>,
    /// Read and hash all files again, also those whose size and time agree with the manifest
    #[arg(long, requires = "manifest")]
    pub(crate) rehash: bool,
    /// Send repair symbols only: another sender sends the source symbols
    ///
    /// For mirrors of the same content: what receivers hear of all senders adds up. With
    /// --manifest, FILE must be there: a copy of the first sender's.
    #[arg(long, alias = "no-source")]
    pub(crate) mirror: bool,
    /// Say what would be sent, and send nothing; with --json every file, directory and link
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

impl SendArguments {
    /// The format of the session.
    pub(crate) fn format(&self) -> SessionFormat {
        session_format(self.flute, self.fcast)
    }
}

/// A code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fec {
    Raptorq,
    Rs,
    Tornado,
    Lt,
    LtStrict,
    None,
}

/// What decides how many layers a receiver takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CongestionScheme {
    None,
    Fixed,
    Rlc,
    FlidSl,
    Webrc,
    WebrcFast,
}

/// A time; who asks for a number of receivers is told why there is none.
fn parse_wait(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| {
        let what = "receivers send nothing and cannot be counted; wait for a time: --wait 10s";
        format!("{error}; {what}")
    })
}
