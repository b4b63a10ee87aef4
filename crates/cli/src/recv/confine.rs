//! What confines a receiver, and the paths that it needs.

use super::mirrors::{self, Mirrors};
use crate::address;
use crate::args::ReceiveArguments;
use crate::console::Console;
use crate::events::ReceiveEvent as Line;
use crate::failure::Failure;
use crate::hook::{Program, Report};
use crate::sandbox::files::{self, ConfineError, Enforcement, Right, Rule, Tcp};
use crate::sandbox::helper::Helper;
use crate::sandbox::network;
use fontana::Outcome;
use fontana::net::{FeedbackSocket, InterfaceSelector, Interfaces, IpVersion};
use std::ffi::OsStr;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// What the C library reads to resolve a name.
const NAME_FILES: [&str; 6] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/run/systemd/resolve",
];

/// The sandbox of a receiver, before it starts its threads.
pub(super) struct Sandbox<'a> {
    arguments: &'a ReceiveArguments,
    interface: Option<InterfaceSelector>,
    hook: Option<Hook<'a>>,
    /// The socket that reports are sent from.
    feedback: Option<FeedbackSocket>,
    network: Network,
    /// A file that will be created, and that the receiver deletes if its disk has no room.
    new_file: Option<PathBuf>,
}

impl<'a> Sandbox<'a> {
    /// Starts what runs outside of the sandbox, then the part that limits sockets. Call it before
    /// anything else: with `--one-way`, no packet is sent from here on.
    ///
    /// # Errors
    /// The arguments contradict each other, or the kernel cannot do what they ask for.
    pub(super) fn prepare(arguments: &'a ReceiveArguments) -> Result<Self, Failure> {
        if arguments.one_way && arguments.named.is_none() {
            refuse_names(&arguments.group)?;
        }
        let is_limited = arguments.one_way || arguments.may_report();
        let interface = if is_limited { default_interface(arguments) } else { None };
        let hook = Hook::start(arguments)?;
        if arguments.one_way {
            network::refuse_sending().map_err(|why| {
                let message = format!("--one-way: the kernel cannot refuse system calls: {why}");
                Failure::new(Outcome::Usage, message, "a kernel with seccomp filters can")
            })?;
        }
        let feedback = arguments.may_report().then(|| open_feedback(arguments)).transpose()?;
        let network = match &feedback {
            _ if arguments.one_way => Network::ReceiveOnly,
            // A receiver that shares sends from two sockets.
            Some(socket) if !arguments.no_sandbox && !arguments.share => {
                limit_to(socket, arguments.sandbox)?
            }
            _ => Network::Open,
        };
        let to = arguments.to.as_deref().filter(|path| *path != Path::new("-"));
        let new_file = to.filter(|path| !path.exists()).map(Path::to_owned);
        Ok(Self { arguments, interface, hook, feedback, network, new_file })
    }

    /// The interface to use if neither the arguments nor the ticket say which.
    pub(super) fn interface(&self) -> Option<InterfaceSelector> {
        self.interface.clone()
    }

    /// The socket that reports are sent from, once.
    pub(super) fn take_feedback(&mut self) -> Option<FeedbackSocket> {
        self.feedback.take()
    }

    /// The program of `--exec`, once.
    pub(super) fn take_hook(&mut self) -> Option<Hook<'a>> {
        self.hook.take()
    }

    /// Confines this thread, and those that it starts, to the files that the receiver needs.
    /// `directory`: where it receives into.
    ///
    /// # Errors
    /// The kernel cannot, and the arguments demand it.
    pub(super) fn confine(&self, directory: &Path) -> Result<Confined, Failure> {
        let Self { arguments, new_file, network, .. } = self;
        mirrors::check(arguments)?;
        let network = *network;
        if arguments.no_sandbox {
            return Ok(Confined { files: Enforcement::Nothing, network, is_wanted: false });
        }
        create(directory);
        let mut rules = vec![
            Rule::new(directory, Right::Change),
            // Settings of the network, the interfaces, and what names the lines of a panic.
            Rule::new("/proc/self", Right::Read),
            Rule::new("/proc/sys", Right::Read),
            // The number of processors, by which the C library shares out its memory.
            Rule::new("/sys/devices/system/cpu", Right::Read),
        ];
        rules.extend(std::env::current_exe().ok().map(|program| Rule::new(program, Right::Read)));
        rules.extend(new_file.as_deref().map(|file| Rule::new(parent(file), Right::Delete)));
        let audit = arguments.audit.as_deref();
        rules.extend(audit.map(|log| Rule::new(parent(log), Right::Log)));
        let uses_web = !Mirrors::of_arguments(arguments).is_empty();
        if uses_web {
            // What the C library resolves names with.
            rules.extend(NAME_FILES.map(|path| Rule::new(path, Right::Read)));
        }
        let tcp = if uses_web { Tcp::Connect } else { Tcp::Refused };
        let files = files::confine(&rules, tcp).map_err(|error| {
            let message = match error {
                ConfineError::Path(path, why) => format!("the sandbox needs {path:?}: {why}"),
                ConfineError::System(why) => format!("the sandbox cannot be set up: {why}"),
            };
            Failure::new(Outcome::Io, message, "leave it out: --no-sandbox")
        })?;
        if arguments.sandbox && files != Enforcement::Full {
            let message = format!("--sandbox: {}", lacks(files));
            let hint = "leave --sandbox out: the receiver is then confined as far as this kernel \
                        can; Linux 6.12 can all of it";
            return Err(Failure::new(Outcome::Usage, message, hint));
        }
        Ok(Confined { files, network, is_wanted: true })
    }
}

fn lacks(files: Enforcement) -> &'static str {
    match files {
        Enforcement::Full => "the receiver is confined to its files",
        Enforcement::Partial => {
            "this kernel's Landlock is old: the receiver is confined to its files, but may \
             truncate files, control devices, open TCP connections or send signals elsewhere"
        }
        Enforcement::Nothing => {
            "this kernel has no Landlock, or one without moves between directories: the receiver \
             is not confined to its files"
        }
    }
}

/// What a process may do with sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    Open,
    /// Datagrams are sent from the socket for reports only.
    ReportsOnly,
    ReceiveOnly,
}

/// How far the receiver is confined.
#[derive(Debug)]
pub(super) struct Confined {
    files: Enforcement,
    network: Network,
    is_wanted: bool,
}

impl Confined {
    pub(super) fn tell(&self, console: &Console) {
        let files = match self.files {
            Enforcement::Full => "full",
            Enforcement::Partial => "partial",
            Enforcement::Nothing => "none",
        };
        let network = match self.network {
            Network::Open => "open",
            Network::ReportsOnly => "reports_only",
            Network::ReceiveOnly => "receive_only",
        };
        console.event(&Line::Sandbox { files: files.into(), network: network.into() });
        if self.is_wanted && self.files != Enforcement::Full {
            console.note(lacks(self.files));
        }
    }
}

/// The program of `--exec`.
pub(super) enum Hook<'a> {
    /// This process starts it.
    Here { name: &'a OsStr, program: Program<'a> },
    /// Another process starts it, because this one is confined.
    Outside { name: &'a OsStr, helper: Helper },
}

impl<'a> Hook<'a> {
    /// `None` if there is no program.
    fn start(arguments: &'a ReceiveArguments) -> Result<Option<Self>, Failure> {
        let (words, directory) = (&arguments.exec, &arguments.output);
        let Some(name) = words.first() else { return Ok(None) };
        if arguments.no_sandbox {
            let program = Program::new(words, directory);
            return Ok(program.map(|program| Self::Here { name, program }));
        }
        let helper = Helper::start(words, directory, arguments.one_way).map_err(|error| {
            let message = format!("cannot start the process that runs --exec: {error}");
            Failure::new(
                Outcome::Io,
                message,
                "mount /proc, or leave out the sandbox: --no-sandbox",
            )
        })?;
        Ok(Some(Self::Outside { name, helper }))
    }

    /// Runs the program for a completed reception, and waits for its end.
    ///
    /// # Errors
    /// A failure with exit code 5 if it cannot be started or does not succeed.
    pub(super) fn run(&mut self, report: &Report) -> Result<(), Failure> {
        match self {
            Self::Here { name, program } => program.run(report).check(name),
            Self::Outside { name, helper } => match helper.run(report) {
                Ok(ended) => ended.check(name),
                Err(error) => {
                    let message = format!("--exec {name:?} cannot be started: {error}");
                    let hint = "what was received is there and verified";
                    Err(Failure::new(Outcome::Io, message, hint))
                }
            },
        }
    }
}

/// The socket that reports are sent from, of the session's address family.
fn open_feedback(arguments: &ReceiveArguments) -> Result<FeedbackSocket, Failure> {
    let group = arguments.ticket().map_or(Ipv4Addr::UNSPECIFIED.into(), |it| it.group);
    FeedbackSocket::open(IpVersion::of(group)).map_err(|error| {
        Failure::new(Outcome::Io, format!("--report: no socket can be opened: {error}"), "")
    })
}

/// Lets the kernel refuse packets from other sockets than this one. `is_demanded`: it is an error
/// if it cannot.
fn limit_to(socket: &FeedbackSocket, is_demanded: bool) -> Result<Network, Failure> {
    match network::refuse_sending_except(socket.as_fd()) {
        Ok(()) => Ok(Network::ReportsOnly),
        Err(why) if is_demanded => {
            let message = format!("--sandbox: the kernel cannot refuse system calls: {why}");
            Err(Failure::new(Outcome::Usage, message, "a kernel with seccomp filters can"))
        }
        Err(_) => Ok(Network::Open),
    }
}

/// Refuses a group whose address a name server would have to be asked for.
fn refuse_names(group: &str) -> Result<(), Failure> {
    if address::is_literal(group) {
        return Ok(());
    }
    let message = format!("--one-way with the name {group:?}: to look it up sends packets");
    Err(Failure::new(Outcome::Usage, message, "give its address: --group ADDRESS:PORT"))
}

/// The routing table's choice, which cannot be asked for later, without netlink. `None` if there is
/// none: that is an error later.
fn default_interface(arguments: &ReceiveArguments) -> Option<InterfaceSelector> {
    let address = match arguments.ticket() {
        Some(ticket) => SocketAddr::new(ticket.group, ticket.port),
        None => address::parse(&arguments.group).ok()?,
    };
    let interfaces = Interfaces::list_without_netlink().ok()?;
    let interface = if address.ip().is_multicast() {
        interfaces.default_for(address.ip()).ok()?.0
    } else {
        interfaces.default_for_host(address.ip()).ok()?
    };
    Some(InterfaceSelector::Name(interface.name.clone()))
}

/// Creates the directory, if it is missing, because a rule needs it. The receiver reports an error.
fn create(directory: &Path) {
    let given = directory.ancestors().filter(|path| !path.as_os_str().is_empty());
    let missing: Vec<_> = given.take_while(|path| !path.exists()).collect();
    if std::fs::create_dir_all(directory).is_ok() {
        for path in missing {
            // A later loss of power must not take the name of the directory.
            let _ = File::open(parent(path)).and_then(|parent| parent.sync_all());
        }
    }
}

/// The directory of a file.
fn parent(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
