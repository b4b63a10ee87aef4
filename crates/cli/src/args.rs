//! What can be typed. What it means is decided by the commands.

mod lab;

pub(crate) use lab::{
    LabArguments, LabCommand, LabMergeArguments, LabRelayArguments, LabRunArguments,
    LabSwarmArguments,
};

use crate::units::{parse_duration, parse_permille, parse_rate, parse_share, parse_size};
use clap::builder::styling::Styles;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use fontana::MetadataMode;
use fontana::net::InterfaceSelector;
use fontana::wire::{PublicKey, Ticket};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A digital fountain: pour files into a multicast group, fill them from it bit-exact.
///
/// One sender, any number of receivers, no packet flowing back. A receiver joins when it likes,
/// loses what it loses, and has the exact files once it has heard about as many bytes as they are
/// long.
#[derive(Debug, Parser)]
#[command(
    name = "fontana",
    version,
    propagate_version = true,
    disable_help_subcommand = true,
    styles = Styles::plain(),
    after_help = "Examples:
  fontana demo                          see it work on this machine: no root, no configuration
  fontana send image.raw                pour a file; prints the command for the receivers
  fontana recv                          list what is on the default group, choose, receive
  fontana recv 'fontana://...' -o /srv  receive what a ticket names",
    after_long_help = "Examples:
  fontana demo                          see it work on this machine: no root, no configuration
  fontana send image.raw                pour a file; prints the command for the receivers
  fontana recv                          list what is on the default group, choose, receive
  fontana recv 'fontana://...' -o /srv  receive what a ticket names

Exit codes (the first that applies):
  7 authentication or key    4 verification failed    5 disk full or input/output
  6 path refused             8 source changed         2 usage
  130 interrupted            3 incomplete in time     75 nothing heard       0 complete"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Send(Box<SendArguments>),
    Recv(Box<ReceiveArguments>),
    Resume(ResumeArguments),
    Demo(DemoArguments),
    Doctor(DoctorArguments),
    Keygen(KeygenArguments),
    Lab(LabArguments),
    Completions(CompletionsArguments),
    Man(ManArguments),
}

/// How a command talks.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Talk {
    /// Print events as JSON, one per line
    ///
    /// Described in docs/events.md. Nothing else is written to standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print errors and what was asked for, nothing else
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

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
    /// followed), modes and times. Owners, extended attributes, set-user-id bits and which files are
    /// hard links to each other are not kept; devices, pipes and sockets are refused.
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
    /// Patterns are those of .gitignore, relative to each directory that is sent: '*.jpg', 'docs/**',
    /// '/top-level'. What is named itself is sent in any case.
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
    /// address. The port may be left out: 7701. Several hosts share the rate. Several groups are the
    /// channels of a layered session.
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
    /// A session in layers, on many groups from that of --to on; receivers join those they can take.
    /// What decides is webrc unless --congestion-control says otherwise.
    #[arg(long)]
    pub(crate) layered: bool,
    /// Layers of rates that stay the same: N channels, on as many groups from that of --to on
    ///
    /// Each layer doubles what the layers below it have together (1, 1, 2, 4, ...), all have the
    /// rate; a receiver takes as many as it can. Other rates: --layers. Other groups: list them in --to.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) channels: Option<u8>,
    /// Rates of the layers, the lowest first: 1M,1M,2M
    ///
    /// One for each channel; together at most the rate (--rate).
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', value_parser = parse_rate)]
    pub(crate) layers: Vec<u64>,
    /// What decides how much of the rate a receiver takes
    ///
    /// webrc (RFC 3738), rlc and flid-sl: what its network has to spare, fair to other traffic, found
    /// by joining and leaving; webrc has channels of its own, as many as the rate takes, and webrc-fast
    /// ten times as fast waves. fixed: whoever runs it (recv --max-rate, --max-layers). none: there are
    /// no layers. By default webrc with --layered, fixed with --channels or --layers, and none else.
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
    /// A session without congestion control yields to nobody. It leaves this network (--ttl) only if
    /// this is said (RFC 8085, section 4.1).
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
    /// Plain FLUTE (RFC 6726), for other programs
    ///
    /// One object per file and nothing of our own: no hashes, no signature, no packet numbers.
    #[arg(long, conflicts_with_all = ["sign", "content_version"])]
    pub(crate) flute: bool,
    /// FCAST (RFC 6968), for other programs: objects that describe themselves
    ///
    /// Long files are cut into slices, each an object with its own name, place in the file and SHA-256;
    /// nobody needs a table. Nothing of our own, and no signature.
    #[arg(long, conflicts_with_all = ["flute", "sign", "content_version", "manifest", "mirror", "watch"])]
    pub(crate) fcast: bool,
    /// With --fcast: most bytes of a file in one object: 64K, 16M
    ///
    /// By default about a block (--block-symbols): 13 MB. Shorter ones are ready sooner and cost more
    /// symbols, and a header each, of some 210 bytes and the name.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = "fcast")]
    pub(crate) slice: Option<u64>,
    /// Code to protect the symbols with
    ///
    /// raptorq (RFC 6330) makes as many different symbols as anybody wants; rs (Reed-Solomon, RFC
    /// 5510) makes 255 for a block of 128 and repeats them; tornado makes two for each source symbol
    /// (--stretch) and repeats them; lt is a fountain that is decoded fast and takes some per cent more symbols;
    /// lt-strict takes hardly more, and longer; none repeats the source symbols.
    #[arg(long, value_name = "CODE", value_enum, default_value_t = Fec::Raptorq)]
    pub(crate) fec: Fec,
    /// With --fec tornado: so many symbols for each source symbol before they are repeated, 2 to 10
    ///
    /// By default 2, which is enough for a receiver that misses up to 40 % and for one sender. With N
    /// a receiver may miss up to about 1 - 1.1 / N of them, and several senders repeat each other
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
    /// Needs --sign: receivers follow the key (fontana recv --watch). The ticket names the key and no
    /// manifest, and stays valid; so does the session's number, which follows from the key. The old
    /// version is sent until the new one is ready. Several such senders with one key need different
    /// --tsi. See docs/watch.md.
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
    /// receivers hear of all of them adds up, and one ticket is for all. The files must be the same;
    /// those whose size and time agree are not read again.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "flute")]
    pub(crate) manifest: Option<PathBuf>,
    /// Read and hash all files again, also those whose size and time agree with the manifest
    #[arg(long, requires = "manifest")]
    pub(crate) rehash: bool,
    /// Send repair symbols only: another sender sends the source symbols
    ///
    /// For mirrors of the same content: what receivers hear of all senders adds up. With --manifest,
    /// FILE must be there: a copy of the first sender's.
    #[arg(long, alias = "no-source")]
    pub(crate) mirror: bool,
    /// Say what would be sent, and send nothing; with --json every file, directory and link
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

impl SendArguments {
    /// How receivers learn what is sent.
    pub(crate) fn metadata(&self) -> MetadataMode {
        metadata(self.flute, self.fcast)
    }
}

impl ReceiveArguments {
    /// Which kind of session is received.
    pub(crate) fn metadata(&self) -> MetadataMode {
        metadata(self.flute, self.fcast)
    }
}

fn metadata(flute: bool, fcast: bool) -> MetadataMode {
    match (flute, fcast) {
        (true, _) => MetadataMode::Flute,
        (_, true) => MetadataMode::Fcast,
        _ => MetadataMode::Manifest,
    }
}

/// A time; who asks for a number of receivers is told why there is none.
fn parse_wait(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| {
        let what = "receivers send nothing and cannot be counted; wait for a time: --wait 10s";
        format!("{error}; {what}")
    })
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

#[derive(Clone, Debug, Args)]
pub(crate) struct InterfaceArgument {
    /// Network interface: its name, its address, or its network (10.0.0.0/8)
    ///
    /// By default the one that the routing table gives for the group, or else the first one that
    /// carries multicast.
    #[arg(short, long, value_name = "NAME|ADDR|CIDR")]
    pub(crate) interface: Option<InterfaceSelector>,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct MemoryArgument {
    /// Memory to use, whatever the size of the files: 128M, 1G
    ///
    /// At least 32M. Files that are larger cost time, not memory.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_size)]
    pub(crate) memory: u64,
}

/// Receive files from a multicast group
///
/// With a ticket: the session it names. Without: lists what is on the group and asks. Sends
/// nothing, ever. Files appear under their names when every byte of them is verified.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana recv                           list what is there, choose
  fontana recv 'fontana://192.0.2.1@239.255.77.1:7701/5?manifest=...' -o /srv/images
  fontana recv -y -i eth0 --timeout 10m  the first session that is heard on eth0
  fontana recv 'fontana://...' --only '*.jpg'    a part of it; the names: --list
  fontana recv 'fontana://...' --to - | tar x    unpack what is received as it comes
  fontana recv 'fontana://...' --to /dev/sdb     write a disk image where it belongs
  fontana recv 'fontana://...?key=...' --watch -o /srv/images    every newer version
  fontana recv --flute -y                files of a plain FLUTE session; nobody vouches for them
  fontana recv --fcast -y                files of an FCAST session; nobody vouches for them")]
pub(crate) struct ReceiveArguments {
    /// What the sender printed: fontana://...
    pub(crate) ticket: Option<Ticket>,
    /// Group to listen on without a ticket
    #[arg(
        long,
        value_name = "GROUP:PORT",
        conflicts_with = "ticket",
        default_value = "239.255.77.1:7701"
    )]
    pub(crate) group: String,
    #[command(flatten)]
    pub(crate) interface: InterfaceArgument,
    /// Directory that files go to
    #[arg(short, long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
    /// Where a stream, or the session's only file, goes: standard output (-), a device, or a file
    ///
    /// To standard output, every byte is verified before it is written, and nothing follows a gap; all
    /// messages go to standard error then, events (--json) too. A device that is not in use is
    /// written in place, after it was confirmed (--yes), and all of it is read back before success is
    /// said; so is a file, which must not be there without --overwrite.
    #[arg(long, value_name = "-|DEVICE|FILE", value_hint = ValueHint::AnyPath,
          conflicts_with_all = ["output", "flute", "fcast", "only", "skip_existing", "list", "watch"])]
    pub(crate) to: Option<PathBuf>,
    /// Directory for what cannot be handed over yet, with --to
    ///
    /// For standard output it takes as much room as the file is long, for a device as much as its
    /// repair symbols. By default that for temporary files: TMPDIR, or /tmp.
    #[arg(long, value_name = "DIR", requires = "to", value_hint = ValueHint::DirPath)]
    pub(crate) staging: Option<PathBuf>,
    /// Bytes of a stream that may wait on the disk until they can be handed over: 512M, 4G
    ///
    /// A consumer that stops reading for longer than this lasts loses the stream.
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = parse_size)]
    pub(crate) window: u64,
    /// Replace files that exist
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Receive only what the files in DIR do not hold already
    ///
    /// Found by hashing them, never by size or time. Files that are the same stay as they are, but
    /// for mode and time; of others that may be replaced (--overwrite), only the blocks that differ
    /// are received. Files that share a block, small ones, must all be there to tell of any.
    #[arg(long, conflicts_with_all = ["flute", "fcast"])]
    pub(crate) skip_existing: bool,
    /// Receive only files and links that match GLOB; may be repeated
    ///
    /// Patterns are those of .gitignore, relative to the top of what is sent: '*.jpg', 'docs/**',
    /// '/photos/2026/'. Objects with no byte of such a file are not received at all. Names: --list.
    #[arg(long, value_name = "GLOB", conflicts_with_all = ["flute", "fcast"])]
    pub(crate) only: Vec<String>,
    /// List the names in the session, and receive nothing; with --json all of them
    #[arg(long, conflicts_with_all = ["flute", "fcast", "only"])]
    pub(crate) list: bool,
    /// Take the first session that is heard, and write to the device (--to), without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Key of the publisher, if the ticket does not name it: take only what is signed with it
    #[arg(long, value_name = "KEY", conflicts_with_all = ["flute", "fcast"])]
    pub(crate) key: Option<PublicKey>,
    /// Take every newer version of the publisher, until told to stop
    ///
    /// The directory remembers the newest version (.fontana-mark-KEY), and what is not newer is not
    /// taken, also after a restart. Files that earlier versions have brought are replaced, of others
    /// only with --overwrite; files that a newer version does not have any more stay. Implies
    /// --skip-existing. A manifest= of the ticket counts for nothing then. See docs/watch.md.
    #[arg(long, conflicts_with_all = ["flute", "fcast", "list", "once", "any_version"])]
    pub(crate) watch: bool,
    /// With --watch: end after N versions
    #[arg(long, value_name = "N", requires = "watch", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// With --watch: how long to leave the group alone while only old versions are sent
    #[arg(long, value_name = "TIME", requires = "watch", default_value = "10", value_parser = parse_duration, hide = true)]
    pub(crate) look_every: Duration,
    /// Run PROGRAM when everything is complete and verified, with --watch for every version
    ///
    /// Takes the rest of the command line: PROGRAM and its arguments, as they are, without a shell. What
    /// was received is in its environment (FONTANA_DIRECTORY, FONTANA_MANIFEST, FONTANA_VERSION,
    /// FONTANA_VERIFIED, FONTANA_FILES, FONTANA_BYTES, FONTANA_SESSION, FONTANA_LABEL). It is waited
    /// for; if it fails, the exit code is 5.
    #[arg(long, value_name = "PROGRAM [ARG]...", num_args = 1.., allow_hyphen_values = true,
          conflicts_with = "list", value_hint = ValueHint::ExecutablePath)]
    pub(crate) exec: Vec<OsString>,
    /// Take a version that is older than the newest that the directory has had, too
    #[arg(long)]
    pub(crate) any_version: bool,
    /// Leave after the first complete session
    ///
    /// This is what happens anyway, with and without a ticket: the option is for scripts that want
    /// to say so.
    #[arg(long)]
    pub(crate) once: bool,
    /// Give up when it is not complete after so long: 90, 90s, 10m, 2h
    ///
    /// By default it takes the time it takes, as long as anything is heard (--silence).
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Give up when nothing of the session is heard for so long; 0: never
    ///
    /// By default 60, which covers a switch that learns the group and a sender that is being
    /// restarted; with --watch never.
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration)]
    pub(crate) silence: Option<Duration>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgument,
    /// Of a layered session, take no more than this many bits per second: 20M
    ///
    /// By what the session says of its layers; a session that has nothing as slow is refused.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub(crate) max_rate: Option<u64>,
    /// Of a layered session, take no more than N layers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) max_layers: Option<u8>,
    /// Most bytes to accept in one session: 10G
    ///
    /// Whoever may send to the group decides how much it is. The default is 32T: the disk decides.
    #[arg(long, value_name = "SIZE", default_value = "32T", value_parser = parse_size)]
    pub(crate) max_size: u64,
    /// Bytes of kernel receive buffer to ask for
    ///
    /// The default holds 67 ms at 1 Gbit/s. Linux gives at most net.core.rmem_max.
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = parse_size)]
    pub(crate) receive_buffer: u64,
    /// Receive the files of a plain FLUTE session (RFC 6726); nobody vouches for them
    #[arg(long)]
    pub(crate) flute: bool,
    /// Receive the files of an FCAST session (RFC 6968); nobody vouches for them
    ///
    /// Complete when the sender's list of objects says that it is, and all of them are here.
    #[arg(long, conflicts_with = "flute")]
    pub(crate) fcast: bool,
    /// Decode when N symbols more than necessary have arrived
    ///
    /// By default as soon as it could succeed. Waiting saves attempts on slow machines.
    #[arg(long, value_name = "N")]
    pub(crate) patient: Option<u32>,
    /// Throw away so many per cent of the packets
    #[arg(long, value_name = "PERCENT", value_parser = parse_share, hide = true)]
    pub(crate) simulate_loss: Option<f64>,
    /// Which packets those are
    #[arg(long, value_name = "N", default_value_t = 0, requires = "simulate_loss", hide = true)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// List or discard what interrupted receptions have left
///
/// A receiver that is started again with the same directory goes on with it by itself: nothing has to
/// be done for that.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana resume                          list what was interrupted here
  fontana resume /srv/images --discard 16b4e25b")]
pub(crate) struct ResumeArguments {
    /// Directory that files went to
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
    /// Which reception: what the list begins with, or the first digits of it
    ///
    /// May be left out where there is only one.
    #[arg(value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// List them; this is what happens anyway
    #[arg(long, conflicts_with = "discard")]
    pub(crate) list: bool,
    /// Remove what it has received so far
    ///
    /// Files that are complete stay. What is being received is refused.
    #[arg(long)]
    pub(crate) discard: bool,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// Show one sender and five receivers on this machine
///
/// A clean receiver, two lossy ones, one that joins late and one that is stopped and started
/// again. Takes less than ten seconds, 200 MB of temporary files, no root and no configuration.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Way of the packets, instead of the first one that works
    #[arg(long, value_enum, hide = true)]
    pub(crate) path: Option<DemoPath>,
    /// Bytes of the file
    #[arg(long, value_name = "SIZE", default_value = "20M", value_parser = parse_size, hide = true)]
    pub(crate) size: u64,
    #[command(flatten)]
    pub(crate) talk: Talk,
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

/// How packets get from the sender to five receivers on the same machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoPath {
    Multicast,
    Broadcast,
    Unicast,
}

/// See whether multicast works on this host, and what helps if not
///
/// Looks at interfaces, buffers, loopback, offload, the IGMP querier and the firewall. Changes
/// nothing; nothing leaves this host but the system's membership reports. As root it sees more.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Look at this interface only: its name, its address, or its network (10.0.0.0/8)
    #[arg(short, long, value_name = "NAME|ADDR|CIDR")]
    pub(crate) interface: Option<InterfaceSelector>,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// Make a key to sign sessions with
///
/// Writes the secret key to FILE, for this user only, and prints the public key.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana keygen publisher.key
  fontana send image.raw --sign publisher.key")]
pub(crate) struct KeygenArguments {
    /// File to create; one that exists is left alone
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana completions bash > ~/.local/share/bash-completion/completions/fontana
  fontana completions fish > ~/.config/fish/completions/fontana.fish")]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Print the manual page, or write all pages to a directory
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana man | man -l -
  fontana man ~/.local/share/man/man1")]
pub(crate) struct ManArguments {
    /// Directory for fontana.1, fontana-send.1 and the others
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn documented_defaults_are_those_of_the_library() {
        let send = Arguments::parse_from(["fontana", "send", "f"]);
        let Command::Send(send) = send.command else { panic!("not send") };
        let options = fontana::SendOptions::new(Vec::new());
        assert_eq!(send.rate / 8, options.rate_bytes_per_second);
        assert_eq!(send.ttl, options.reach.hop_limit);
        assert_eq!(send.memory.memory, options.memory as u64);
        assert_eq!(send.content_version, options.manifest_version);
        assert_eq!(send.repair, fontana::StreamOptions::new("").repair_permille);
        assert_eq!(send.to, [fontana::DEFAULT_GROUP.to_string()]);
        let receive = Arguments::parse_from(["fontana", "recv"]);
        let Command::Recv(receive) = receive.command else { panic!("not recv") };
        let options = fontana::ReceiveOptions::new(".");
        assert_eq!(receive.silence, None);
        assert_eq!(options.give_up_after_silence, Some(Duration::from_secs(60)));
        assert_eq!(receive.memory.memory, options.memory as u64);
        assert_eq!(receive.max_size, options.max_bytes);
        assert_eq!(receive.window, options.window);
        assert_eq!(receive.receive_buffer, options.receive_buffer as u64);
        assert_eq!(receive.group, fontana::DEFAULT_GROUP.to_string());
    }

    #[test]
    fn exec_takes_the_rest_of_the_line_as_it_is() {
        let words =
            ["fontana", "recv", "-y", "--exec", "run me", "--json", "a b", "--", "-y", "$x"];
        let Command::Recv(receive) = Arguments::parse_from(words).command else {
            panic!("not recv")
        };
        assert_eq!(receive.exec, words[4..]);
        assert!(receive.yes && !receive.talk.json);
    }

    #[test]
    fn sequential_takes_its_percentage_after_an_equals_sign_only() {
        let sequential = |arguments: &[&str]| {
            let all = ["fontana", "send"].iter().chain(arguments);
            match Arguments::parse_from(all).command {
                Command::Send(send) => (send.sequential, send.files.len()),
                _ => panic!("not send"),
            }
        };
        assert_eq!(sequential(&["f"]), (None, 1));
        assert_eq!(sequential(&["--sequential", "f"]), (Some(100), 1));
        assert_eq!(sequential(&["--sequential=5", "f"]), (Some(50), 1));
    }
}
