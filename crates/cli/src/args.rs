//! The command line's definitions. Each command decides what its arguments mean.

#[cfg(test)]
mod count;
mod help;
mod order;
mod receive;
mod refusals;
mod send;
mod serve;

pub(crate) use order::OrderArgument;
pub(crate) use receive::{
    AcceptArgument, MirrorArgument, MirrorsArgument, NamedTicket, ReceiveArguments, SandboxArgument,
};
pub(crate) use send::{
    Fec, LayeringArgument, LayersArgument, ReceiversArgument, SendArguments, WaitArgument,
};
pub(crate) use serve::ServeArguments;

use clap::builder::styling::Styles;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use fontana::net::InterfaceSelector;
use fontana::wire::{PublicKey, ShelfNumber, Ticket, WebAddress};
use fontana_console::failure::Failure;
use fontana_console::log::{self, LogFilter};
use fontana_console::talk::Talk;
use fontana_console::units::{parse_duration, parse_lifetime, parse_size};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// A digital fountain: send files over multicast to any number of receivers, bit-exact
///
/// One sender, any number of receivers, which say whether they are complete if they may send. A
/// receiver may join at any time and lose packets. It has the exact files once it has received
/// about as many bytes as they are long.
#[derive(Debug, Parser)]
#[command(
    name = "fontana",
    version,
    propagate_version = true,
    styles = Styles::plain(),
    after_help = "Examples:
  fontana demo                          see it work on this machine: no root, no configuration
  fontana send image.raw                send a file; prints the command for the receivers
  fontana recv                          list what is on the default group, choose, receive
  fontana recv 'fontana://...' -o /srv  receive what a ticket names",
    after_long_help = "Examples:
  fontana demo                          see it work on this machine: no root, no configuration
  fontana send image.raw                send a file; prints the command for the receivers
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
    /// Print a trace of the program on standard error: debug, or fontana_net=debug,info
    ///
    /// FILTER has the syntax of Rust's tracing-subscriber: levels (error, warn, info, debug,
    /// trace), also by crate. Operations on each packet have the level trace.
    #[arg(long, global = true, value_name = "FILTER", value_parser = log::parse)]
    pub(crate) log: Option<LogFilter>,
}

/// The arguments of this process, and whether all of them go together.
pub(crate) fn parse() -> (Arguments, Result<(), Failure>) {
    let all = std::env::args_os().any(|word| word == "--help-all");
    let mut root = command(all);
    let matches = root.try_get_matches_from_mut(std::env::args_os()).unwrap_or_else(|e| fail(&e));
    let arguments = Arguments::from_arg_matches(&matches);
    let mut arguments = arguments.unwrap_or_else(|error| fail(&error.format(&mut root)));
    let implied = match &mut arguments.command {
        Command::Recv(receive) => receive.follow_ticket(),
        _ => None,
    };
    (arguments, refusals::check(&matches, &root, implied))
}

/// Says what is wrong with the arguments. A ticket is a secret also where it has a typing error.
fn fail(error: &clap::Error) -> ! {
    let text = error.render().to_string();
    if !text.contains(SECRET) {
        error.exit();
    }
    let _ = std::io::stderr().write_all(without_secrets(&text).as_bytes());
    std::process::exit(error.exit_code())
}

const SECRET: &str = "secret=";

/// The text with dots in place of each secret of a ticket in it.
fn without_secrets(text: &str) -> String {
    let mut parts = text.split(SECRET);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_secret = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        shown.extend([SECRET, "…", part.trim_start_matches(is_secret)]);
    }
    shown
}

/// The definitions. `all`: help has all options.
pub(crate) fn command(all: bool) -> clap::Command {
    help::arrange(Arguments::command(), all)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Send(Box<SendArguments>),
    Recv(Box<ReceiveArguments>),
    Publish(PublishArguments),
    Serve(ServeArguments),
    Resume(ResumeArguments),
    Demo(DemoArguments),
    Doctor(DoctorArguments),
    Keygen(KeygenArguments),
    Certify(CertifyArguments),
    Completions(CompletionsArguments),
    Man(ManArguments),
    #[command(hide = true)]
    ExecHelper(ExecHelperArguments),
}

/// The format of a session, without its options.
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

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct MemoryArgument {
    /// Use at most this much memory, whatever the size of the files: 128M, 1G
    ///
    /// At least 32M. Larger files take more time, not more memory.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_size)]
    pub(crate) memory: u64,
}

/// Describe files that web servers have, so that receivers can verify every block of them
///
/// Reads and hashes the files, writes a file with their manifest beside them, named by its hash,
/// and fontana.head, which names the manifest. Prints a ticket. Nothing is sent: copy the files and
/// these two to the mirrors, under the same names.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana publish image.raw --web https://a.example/pub/ --web https://b.example/
  fontana publish image.raw --web https://c.example/1/ --shelf c/1 --mirror 1
  fontana recv 'fontana://web/?manifest=...&web=...'    from all of them at once
  fontana publish image.raw --web https://a.example/pub/ --sign publisher.key
  fontana recv https://a.example/pub/ --key KEY    what KEY has signed there")]
pub(crate) struct PublishArguments {
    /// Files and directories
    #[arg(required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) files: Vec<PathBuf>,
    /// Name this mirror in the ticket: where the files will be, http:// or https://
    #[arg(long, value_name = "URL", required = true)]
    pub(crate) web: Vec<WebAddress>,
    /// Write the manifest to this directory instead of that of the first file
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) into: Option<PathBuf>,
    /// Verify blocks of about this many bytes: 256K, 4M
    ///
    /// A block is what is requested again if a mirror sends a wrong byte of it. A file has at most
    /// 255 blocks.
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = parse_size)]
    pub(crate) block_size: u64,
    /// Give the content this version
    ///
    /// Raise it when newer content replaces it, so that receivers that know the key of --sign can
    /// tell which is newer.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) content_version: u64,
    /// Write a shelf to this directory: repair symbols instead of the files, for a mirror
    ///
    /// All shelves with different numbers (--mirror) add up, and so do symbols of a multicast
    /// session: a receiver needs as many bytes of all of them together as the files have. Copy the
    /// directory to the mirror. Files that are there already are compared, and written again only
    /// if they differ.
    #[arg(long, value_name = "DIR", requires = "mirror", value_hint = ValueHint::DirPath)]
    pub(crate) shelf: Option<PathBuf>,
    /// Give the shelf this number: from 1 to 15, another one for each mirror
    #[arg(long, value_name = "NUMBER", requires = "shelf", value_parser = parse_shelf_number)]
    pub(crate) mirror: Option<ShelfNumber>,
    /// Write this many symbols for each source symbol: 0.4, 1.05
    ///
    /// With more than 1 a shelf suffices alone. The symbols of three shelves of 0.4 suffice too.
    #[arg(long, value_name = "FACTOR", default_value = "1.05", requires = "shelf",
          value_parser = parse_stretch)]
    pub(crate) stretch: u16,
    #[command(flatten)]
    pub(crate) signing: HeadSigning,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// How the head of a mirror is signed.
#[derive(Debug, Args)]
pub(crate) struct HeadSigning {
    /// Sign what the mirror says of itself (fontana.head) with the key in KEYFILE (fontana keygen)
    ///
    /// Receivers that know the public key then need only the address of the mirror: fontana recv
    /// URL --key KEY.
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath)]
    pub(crate) sign: Option<PathBuf>,
    /// Let the signature expire after this time; 0: never
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = parse_lifetime, requires = "sign")]
    pub(crate) expires: Duration,
}

/// Parses the number of a shelf.
fn parse_shelf_number(text: &str) -> Result<ShelfNumber, String> {
    let number = text.parse().ok().and_then(ShelfNumber::new);
    number.ok_or_else(|| format!("a number from 1 to {}", ShelfNumber::MAX))
}

/// Parses a stretch factor into thousandths.
fn parse_stretch(text: &str) -> Result<u16, String> {
    let factor = text.parse::<f64>().ok().map(|factor| (factor * 1_000.0).round());
    let permille = factor.filter(|permille| (1.0..=65_000.0).contains(permille));
    permille.map(|permille| permille as u16).ok_or_else(|| "a number from 0.001 to 65".to_owned())
}

/// List or discard what interrupted receptions have left
///
/// A receiver that is started again with the same directory resumes by itself. It does not need
/// this command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana resume                          list what was interrupted here
  fontana resume /srv/images --discard 16b4e25b")]
pub(crate) struct ResumeArguments {
    /// Directory that files were written to
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
    /// Reception: its tag in the list, or the first digits of it
    ///
    /// Not needed if there is only one.
    #[arg(value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// Remove what it has received so far
    ///
    /// Complete files stay. A reception that is running is refused.
    #[arg(long)]
    pub(crate) discard: bool,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// Show one sender and five receivers on this machine
///
/// One receiver without loss, two with losses, one that joins late, and one that is stopped and
/// started again. Takes less than ten seconds and 200 MB of temporary files. Needs no root and no
/// configuration.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Send packets this way instead of the first one that works
    #[arg(long, value_enum, hide = true)]
    pub(crate) path: Option<DemoPath>,
    /// Send a file of this many bytes
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

/// Check whether multicast works on this host, and say what helps if it does not
///
/// Checks interfaces, buffers, loopback, offload, the IGMP querier and the firewall, and with a
/// ticket whether packets of its session arrive; without one, which packets of fontana doctor
/// --send on other hosts arrive: at which rates, up to which size, and with which losses. Changes
/// nothing. Without --send no packet leaves this host except the system's membership reports, and,
/// if nothing of a ticket arrives, at most ten empty ones to its sender, which tell whether it
/// runs. Root sees more. The last line names the likeliest cause.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Listen for the session of this ticket: fontana://..., its file, or - (standard input)
    #[arg(value_parser = session_ticket, value_hint = ValueHint::FilePath)]
    pub(crate) ticket: Option<Ticket>,
    /// Check this interface only: its name, its address, or its network (10.0.0.0/8)
    #[arg(short, long, value_name = "NAME|ADDR|CIDR")]
    pub(crate) interface: Option<InterfaceSelector>,
    /// Send packets for a minute, for fontana doctor on other hosts, which says what arrives
    ///
    /// They go to the group 239.255.76.1, port 7701, with TTL 1: packets of 500 to 8972 bytes, as
    /// far as the interface carries them, then for a second each 2, 20 and 100 Mbit/s, in turn.
    #[arg(long)]
    pub(crate) send: bool,
    /// Send or listen for this time: 90, 90s, 10m
    ///
    /// Without it, a host listens until it knows enough. Switches that forget members do so after
    /// about 260 s: with 6m at both ends it shows.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// The ticket of a session, as [`ReceiveArguments`] take it.
fn session_ticket(text: &str) -> Result<Ticket, String> {
    match text.parse()? {
        NamedTicket::Session(ticket) => Ok(*ticket),
        other => Err(format!("{other} names no session")),
    }
}

/// Make a key to sign sessions with
///
/// Writes the secret key to FILE, readable by this user only, and prints the public key. A group
/// key (--group) has none: copy FILE to all senders and receivers of the group.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana keygen publisher.key
  fontana send image.raw --sign publisher.key
  fontana keygen --group group.key
  fontana send image.raw --group-key group.key")]
pub(crate) struct KeygenArguments {
    /// Make a key that all senders and receivers of a group share
    #[arg(long)]
    pub(crate) group: bool,
    /// File to create; an existing one is not changed
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

/// Certify a mirror: let another sender send your content without your key
///
/// Signs a session head for the mirror, which repeats it (fontana send --certificate). Receivers
/// that know your key accept the mirror, and it can send only the content of the manifest. A
/// certificate cannot be revoked, so let it expire.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mirror$    fontana keygen mirror.key                prints the key of the mirror
  publisher$ fontana certify image.manifest --mirror KEY --sign publisher.key -o mirror.certificate
  mirror$    fontana send image.raw --manifest image.manifest --certificate mirror.certificate \\
               --sign mirror.key")]
pub(crate) struct CertifyArguments {
    /// Manifest of the content (fontana send --manifest)
    #[arg(value_name = "MANIFEST", value_hint = ValueHint::FilePath)]
    pub(crate) manifest: PathBuf,
    /// Certify the mirror with this public key, which fontana keygen has printed there
    #[arg(long, value_name = "KEY")]
    pub(crate) mirror: PublicKey,
    /// Sign with the publisher's key in KEYFILE (fontana keygen)
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath)]
    pub(crate) sign: PathBuf,
    /// Let the certificate expire after this time; 0: never
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = parse_lifetime)]
    pub(crate) expires: Duration,
    /// Write the certificate to FILE
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

/// Run the program of --exec outside of the sandbox, for each line on standard input
#[derive(Debug, Args)]
pub(crate) struct ExecHelperArguments {
    /// Let the program open no sockets but those of this host
    #[arg(long)]
    pub(crate) without_networks: bool,
    /// What FONTANA_DIRECTORY says
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) directory: Option<PathBuf>,
    /// The program and its arguments
    #[arg(long, num_args = 1.., allow_hyphen_values = true, required = true)]
    pub(crate) exec: Vec<OsString>,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana completions bash > ~/.local/share/bash-completion/completions/fontana
  fontana completions fish > ~/.config/fish/completions/fontana.fish")]
pub(crate) struct CompletionsArguments {
    /// Shell to complete for
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Print the manual page, or write all pages to a directory
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana man | man -l -
  fontana man ~/.local/share/man/man1")]
pub(crate) struct ManArguments {
    /// Write fontana.1, fontana-send.1 and the other pages to this directory
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana::{Profile, ReceiverBuilder};
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn secrets_of_tickets_are_not_shown() {
        let shown = without_secrets("fontana://a?secret=A-b_9&ask=1 and 'fontana://b?secret=C'");
        assert_eq!(shown, "fontana://a?secret=…&ask=1 and 'fontana://b?secret=…'");
    }

    #[test]
    fn the_definitions_are_consistent() {
        command(false).debug_assert();
    }

    #[test]
    fn documented_defaults_are_those_of_the_library() {
        let send = Arguments::parse_from(["fontana", "send", "f"]);
        let Command::Send(send) = send.command else { panic!("not send") };
        assert_eq!(send.rate(), fontana::Rate::DEFAULT.as_bits_per_second());
        assert_eq!(send.ttl, fontana::Addressing::default().hop_limit);
        assert_eq!(send.memory.memory, fontana::DEFAULT_MEMORY as u64);
        assert_eq!(send.content_version, fontana::FontanaFormat::default().version);
        assert_eq!(send.order.profile(), Profile::default());
        let permille = fontana::StreamSenderBuilder::DEFAULT_REPAIR_PERMILLE;
        assert_eq!(permille, 100, "the help says 10 %");
        assert!(send.to.is_empty() && fontana::DEFAULT_GROUP.to_string() == "239.255.77.1:7701");
        assert_eq!(fontana::Addressing::DEFAULT_GROUP_V6.to_string(), "[ff15::7701]:7701");
        let receive = Arguments::parse_from(["fontana", "recv"]);
        let Command::Recv(receive) = receive.command else { panic!("not recv") };
        assert_eq!(receive.silence, None);
        assert_eq!(ReceiverBuilder::DEFAULT_SILENCE, Duration::from_secs(60));
        assert_eq!(receive.memory.memory, fontana::DEFAULT_MEMORY as u64);
        assert_eq!(receive.max_size, ReceiverBuilder::DEFAULT_MAX_BYTES);
        assert_eq!(receive.group, None);
    }

    /// Adds the long options that the help of a command and of its subcommands shows.
    fn add_shown(command: &clap::Command, options: &mut BTreeSet<String>) {
        let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
        options.extend(shown.filter_map(|argument| Some(format!("--{}", argument.get_long()?))));
        let subcommands = command.get_subcommands().filter(|command| !command.is_hide_set());
        subcommands.for_each(|command| add_shown(command, options));
    }

    /// The words of a text that are long options.
    fn named(text: &str) -> impl Iterator<Item = &str> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let words = text.split(move |c| !is_part(c));
        words.filter(|word| {
            let name = word.strip_prefix("--").unwrap_or_default();
            name.starts_with(|c: char| c.is_ascii_lowercase()) && name.len() > 1
        })
    }

    /// The messages and the help of a file of sources.
    fn messages(source: &str) -> String {
        let program = source.split("#[cfg(test)]").next().unwrap_or_default();
        let is_said =
            |line: &&str| !line.trim_start().starts_with("//") || line.contains("    ///");
        program.lines().filter(is_said).collect::<Vec<_>>().join("\n")
    }

    fn files_below(directory: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => files_below(&path, files),
                false => files.push(path),
            }
        }
    }

    #[test]
    fn every_option_that_is_named_in_a_message_or_document_is_declared_and_shown() {
        // Those of every command, and what the events of the laboratory are about.
        let others = ["--help", "--version", "--real", "--sockets"];
        let mut options: BTreeSet<_> = others.map(str::to_owned).into();
        add_shown(&command(true), &mut options);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut files = vec![root.join("README.md")];
        files_below(&root.join("crates/cli/src"), &mut files);
        files_below(&root.join("crates/console/src"), &mut files);
        // Of the laboratory and of other programs.
        let others = [
            "benchmarks",
            "comparison",
            "emulator",
            "errata",
            "experiments",
            "history",
            "hostile",
            "lab",
            "papers",
        ];
        for entry in std::fs::read_dir(root.join("docs")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            files.extend((path.is_file() && !others.contains(&name)).then_some(path));
        }
        let mut unknown = Vec::new();
        for path in files {
            let Ok(mut text) = std::fs::read_to_string(&path) else { continue };
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("rs") => text = messages(&text),
                Some("md") => {}
                _ => continue,
            }
            let of_others =
                |line: &&str| ["cargo ", "srun ", "fontana-lab"].iter().any(|p| line.contains(p));
            // The process of a hook starts itself with them.
            let is_helper = path.ends_with("sandbox/helper.rs");
            let lines = text.lines().filter(|line| !of_others(line) && !is_helper);
            for option in lines.flat_map(named).filter(|option| !options.contains(*option)) {
                unknown.push(format!("{option} in {}", path.display()));
            }
        }
        assert!(unknown.is_empty(), "{unknown:#?}");
    }

    #[test]
    fn what_the_first_page_names_are_commands() {
        let page = include_str!("../../../docs/networks.md");
        let page = page.replace("TICKET", "fontana://10.0.0.7@239.255.77.1:7701/5");
        let page = page.replace("http://HOST/", "http://10.0.0.7/");
        let commands = page.split('`').filter(|code| code.starts_with("fontana "));
        let mut count = 0;
        for words in commands.map(str::split_whitespace) {
            let text = words.clone().collect::<Vec<_>>().join(" ");
            // A ticket of a file is read while it is parsed.
            let words = words.map(|word| if word == "ticket" { "http://10.0.0.7/" } else { word });
            let root = command(true);
            let matches = root.clone().try_get_matches_from(words);
            let matches = matches.unwrap_or_else(|error| panic!("{text}: {error}"));
            refusals::check(&matches, &root, None)
                .unwrap_or_else(|refused| panic!("{text}: {refused:?}"));
            count += 1;
        }
        assert!(count > 20, "{count} commands");
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
}
