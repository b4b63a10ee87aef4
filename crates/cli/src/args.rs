//! What can be typed. What it means is decided by the commands.

mod lab;
mod send;

pub(crate) use lab::{
    LabArguments, LabCommand, LabMergeArguments, LabRelayArguments, LabRunArguments,
    LabSwarmArguments,
};
pub(crate) use send::{CongestionScheme, Fec, SendArguments};

use crate::log::{self, LogFilter};
use crate::units::{parse_duration, parse_rate, parse_share, parse_size};
use clap::builder::styling::Styles;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use fontana::Profile;
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
    /// Print what the program does on standard error: debug, or fontana_net=debug,info
    ///
    /// FILTER is that of Rust's tracing-subscriber: levels (error, warn, info, debug, trace), also by
    /// crate. What is done for each packet is at the level trace.
    #[arg(long, global = true, value_name = "FILTER", value_parser = log::parse)]
    pub(crate) log: Option<LogFilter>,
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

impl ReceiveArguments {
    /// Which kind of session is received.
    pub(crate) fn format(&self) -> SessionFormat {
        session_format(self.flute, self.fcast)
    }
}

/// What a session is to be good at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileArgument {
    /// Complete as soon as can be
    Speed,
    /// As little as can be waits at a receiver
    Space,
    /// Receivers whose processors are slower than their networks
    Cpu,
}

impl From<ProfileArgument> for Profile {
    fn from(argument: ProfileArgument) -> Self {
        match argument {
            ProfileArgument::Speed => Self::Speed,
            ProfileArgument::Space => Self::Space,
            ProfileArgument::Cpu => Self::Cpu,
        }
    }
}

/// The format of a session, without what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionFormat {
    Fontana,
    Flute,
    Fcast,
}

fn session_format(flute: bool, fcast: bool) -> SessionFormat {
    match (flute, fcast) {
        (true, _) => SessionFormat::Flute,
        (_, true) => SessionFormat::Fcast,
        _ => SessionFormat::Fontana,
    }
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
    /// To standard output, every byte is verified before it is written, and nothing follows a gap;
    /// all messages go to standard error then, events (--json) too. A device that is not in use is
    /// written in place, after it was confirmed (--yes), and all of it is read back before success
    /// is said; so is a file, which must not be there without --overwrite.
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
    /// taken, also after a restart. Files that earlier versions have brought are replaced, of
    /// others only with --overwrite; files that a newer version does not have any more stay.
    /// Implies --skip-existing. A manifest= of the ticket counts for nothing then. See
    /// docs/watch.md.
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
    /// Takes the rest of the command line: PROGRAM and its arguments, as they are, without a shell.
    /// What was received is in its environment (FONTANA_DIRECTORY, FONTANA_MANIFEST,
    /// FONTANA_VERSION, FONTANA_VERIFIED, FONTANA_FILES, FONTANA_BYTES, FONTANA_SESSION,
    /// FONTANA_LABEL). It is waited for; if it fails, the exit code is 5.
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
    /// What to be good at
    ///
    /// With cpu nothing is decoded before all channels were left, so that a slow processor loses no
    /// packets. The sender has a part in it, too: --profile of fontana send.
    #[arg(long, value_name = "PROFILE", value_enum, default_value_t = ProfileArgument::Speed)]
    pub(crate) profile: ProfileArgument,
    /// Decode when N symbols more than necessary have arrived
    ///
    /// By default as soon as it could succeed. Waiting saves attempts on slow machines.
    #[arg(long, value_name = "N", conflicts_with = "profile")]
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
/// A receiver that is started again with the same directory goes on with it by itself: nothing has
/// to be done for that.
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
    use fontana::ReceiverBuilder;

    #[test]
    fn the_definitions_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn documented_defaults_are_those_of_the_library() {
        let send = Arguments::parse_from(["fontana", "send", "f"]);
        let Command::Send(send) = send.command else { panic!("not send") };
        assert_eq!(send.rate, fontana::Rate::DEFAULT.as_bits_per_second());
        assert_eq!(send.ttl, fontana::Addressing::default().hop_limit);
        assert_eq!(send.memory.memory, fontana::DEFAULT_MEMORY as u64);
        assert_eq!(send.content_version, fontana::FontanaFormat::default().version);
        assert_eq!(Profile::from(send.profile), Profile::default());
        assert_eq!(send.repair, fontana::StreamSenderBuilder::DEFAULT_REPAIR_PERMILLE);
        assert_eq!(send.to, [fontana::DEFAULT_GROUP.to_string()]);
        let receive = Arguments::parse_from(["fontana", "recv"]);
        let Command::Recv(receive) = receive.command else { panic!("not recv") };
        assert_eq!(receive.silence, None);
        assert_eq!(Profile::from(receive.profile).policy(), ReceiverBuilder::DEFAULT_POLICY);
        assert_eq!(ReceiverBuilder::DEFAULT_SILENCE, Duration::from_secs(60));
        assert_eq!(receive.memory.memory, fontana::DEFAULT_MEMORY as u64);
        assert_eq!(receive.max_size, ReceiverBuilder::DEFAULT_MAX_BYTES);
        assert_eq!(receive.window, fontana::FontanaReception::default().stream_window);
        let buffer = fontana::net::receiver::DEFAULT_RECEIVE_BUFFER;
        assert_eq!(receive.receive_buffer, buffer as u64);
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
