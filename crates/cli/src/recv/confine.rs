//! What confines a receiver, and the paths that it needs.

use super::mirrors::{self, Mirrors};
use crate::address;
use crate::args::{ReceiveArguments, SandboxArgument};
use crate::events::ReceiveEvent as Line;
use crate::hook::{Program, Report};
use crate::sandbox::files::{self, Enforcement, Right, Rule, Tcp};
use crate::sandbox::helper::Helper;
use crate::sandbox::network::{self, Sending, Sockets};
use crate::sandbox::process::{self, Needs};
use fontana::Outcome;
use fontana::net::{FeedbackSocket, InterfaceSelector, Interfaces, IpVersion};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
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
    pub(super) fn prepare(
        arguments: &'a ReceiveArguments,
        console: &Console,
    ) -> Result<Self, Failure> {
        let group = arguments.group.as_deref().filter(|_| arguments.named.is_none());
        if let Some(group) = group.filter(|_| arguments.one_way) {
            refuse_names(group)?;
        }
        if arguments.one_way && arguments.sandbox == SandboxArgument::Off {
            let message = "--one-way with --sandbox off: it is the sandbox that keeps packets back";
            return Err(Failure::new(Outcome::Usage, message, "leave one of them out"));
        }
        let is_limited = arguments.one_way || arguments.may_report();
        let interface = if is_limited { default_interface(arguments) } else { None };
        let hook = Hook::start(arguments)?;
        if arguments.one_way {
            let nothing = Sockets { sending: Sending::Nowhere, tcp: false, routes: false };
            network::confine(&nothing).map_err(|why| {
                let message = format!("--one-way: the kernel cannot refuse system calls: {why}");
                Failure::new(Outcome::Usage, message, "a kernel with seccomp filters can")
            })?;
        }
        let feedback = arguments.may_report().then(|| open_feedback(arguments, console)).flatten();
        let network = match &feedback {
            _ if arguments.one_way => Network::ReceiveOnly,
            // A receiver with mirrors asks for names, and one that serves listens.
            Some(socket)
                if arguments.sandbox != SandboxArgument::Off
                    && arguments.then_serve.is_none()
                    && Mirrors::of_arguments(arguments).is_empty() =>
            {
                limit_to(socket, arguments.sandbox == SandboxArgument::Require)?
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

    /// Confines this thread, and those that it starts, to what the receiver needs. `directory`:
    /// where it receives into. `port`: where it listens.
    ///
    /// # Errors
    /// The kernel cannot, and the arguments demand it.
    pub(super) fn confine(&self, directory: &Path, port: u16) -> Result<Confined, Failure> {
        let Self { arguments, network, .. } = self;
        mirrors::check(arguments)?;
        let network = *network;
        if arguments.sandbox == SandboxArgument::Off {
            return Ok(Confined { process: process::Confined::declined(), network });
        }
        create(directory);
        let uses_web = !Mirrors::of_arguments(arguments).is_empty();
        let rules = self.rules(directory, uses_web);
        let tcp = if uses_web { Tcp::Connect } else { Tcp::Refused };
        let sockets = Sockets { sending: Sending::Anywhere, tcp: uses_web, routes: false };
        let needs = Needs {
            files: Some((&rules, tcp)),
            // Reports and --one-way have a filter of their own.
            sockets: (network == Network::Open).then_some(sockets),
            sets_attributes: true,
            ports: &[port],
        };
        let process = process::confine(&needs).map_err(|error| {
            let message = format!("the sandbox cannot be set up: {error}");
            Failure::new(Outcome::Io, message, "leave it out: --sandbox off")
        })?;
        match process.lacks.first() {
            Some(lack) if arguments.sandbox == SandboxArgument::Require => {
                let message = format!("--sandbox require: {lack}");
                let hint = "leave it out: the receiver is then confined as far as this \
                            kernel can; Linux 6.12 can all of it";
                Err(Failure::new(Outcome::Usage, message, hint))
            }
            _ => Ok(Confined { process, network }),
        }
    }

    fn rules(&self, directory: &Path, uses_web: bool) -> Vec<Rule> {
        let mut rules = vec![Rule::new(directory, Right::Change)];
        rules.extend(files::of_every_process());
        let new_file = self.new_file.as_deref();
        rules.extend(new_file.map(|file| Rule::new(parent(file), Right::Delete)));
        let audit = self.arguments.audit.as_deref();
        rules.extend(audit.map(|log| Rule::new(parent(log), Right::Log)));
        if uses_web {
            // What the C library resolves names with.
            rules.extend(NAME_FILES.map(|path| Rule::new(path, Right::Read)));
        }
        rules
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
    process: process::Confined,
    network: Network,
}

impl Confined {
    pub(super) fn tell(&self, console: &Console) {
        let files = match self.process.files {
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
        self.process.tell(console);
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
        if arguments.sandbox == SandboxArgument::Off {
            let program = Program::new(words, Some(directory));
            return Ok(program.map(|program| Self::Here { name, program }));
        }
        let helper = Helper::start(words, Some(directory), arguments.one_way).map_err(|error| {
            let message = format!("cannot start the process that runs --exec: {error}");
            Failure::new(
                Outcome::Io,
                message,
                "mount /proc, or leave out the sandbox: --sandbox off",
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

/// The socket that reports are sent from, of the session's address family. Nothing that is received
/// depends on it.
fn open_feedback(arguments: &ReceiveArguments, console: &Console) -> Option<FeedbackSocket> {
    let group = arguments.ticket().map_or(Ipv4Addr::UNSPECIFIED.into(), |it| it.group);
    let opened = FeedbackSocket::open(IpVersion::of(group));
    opened
        .inspect_err(|error| {
            console.warning(
                &format!("nothing is reported to the sender: {error}"),
                "it does not know when this receiver is complete",
            );
        })
        .ok()
}

/// Lets the kernel refuse packets from other sockets than this one. `is_demanded`: it is an error
/// if it cannot.
fn limit_to(socket: &FeedbackSocket, is_demanded: bool) -> Result<Network, Failure> {
    let sending = Sending::From(socket.as_fd());
    match network::confine(&Sockets { sending, tcp: false, routes: false }) {
        Ok(()) => Ok(Network::ReportsOnly),
        Err(why) if is_demanded => {
            let message =
                format!("--sandbox require: the kernel cannot refuse system calls: {why}");
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
        None => address::group(arguments.group.as_deref(), &[]).ok()?,
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
