//! `fontana serve`: a web server of files and fresh symbols; also after a reception
//! (`recv --then-serve`).

use crate::address_space::is_little;
use crate::args::ServeArguments;
use crate::events::ServeEvent as Line;
use crate::head;
use crate::manifest_file;
use crate::sandbox;
use crate::sandbox::files::{Right, Rule, Tcp};
use crate::sandbox::network::{Sending, Sockets};
use crate::sandbox::process::{self, Confined, Needs};
use crate::version_file::VersionFile;
use fontana::net::thread::return_freed_memory;
use fontana::wire::{Hash, Manifest, WebAddress, WebTicket};
use fontana::{
    CancellationToken, Error, HeldContent, MirroredContent, Outcome, ServeEvent, WebServer,
};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::signal::stop_on_signals;
use fontana_console::units::{Bytes, Count};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Describes the files, and serves them until it is stopped.
pub(crate) fn run(
    arguments: &ServeArguments,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Outcome, Failure> {
    let listener = listen(arguments.listen)?;
    let web = addresses(&listener, &arguments.web)?;
    let ServeArguments { files, block_size, content_version, .. } = arguments;
    let head_signing = head::Signing::read(&arguments.signing)?;
    // Hashing large files takes a while: a signal ends the program.
    let content = match &arguments.manifest {
        None => MirroredContent::describe(files, *block_size, *content_version)?,
        Some(path) => MirroredContent::of_manifest(files, &read_manifest(path)?)?,
    };
    if let Some(key) = &arguments.signing.sign {
        VersionFile::keep_chosen(key, content.manifest().version(), console);
    }
    let memory = usize::try_from(arguments.memory.memory).unwrap_or(usize::MAX);
    confine(files)?.tell(console);
    stop_on_signals(stop)?;
    console.write_aside()?;
    serve(content, Serving { listener, web, memory, head_signing }, console, stop)
}

/// Confines this process to reading the files, and to the sockets that it has, before it handles
/// the first request.
fn confine(files: &[PathBuf]) -> Result<Confined, Failure> {
    let mut rules = sandbox::files::of_every_process();
    rules.extend(files.iter().map(|file| Rule::new(file, Right::Read)));
    let needs = Needs {
        files: Some((&rules, Tcp::Refused)),
        sockets: Some(Sockets { sending: Sending::Nowhere, tcp: false, routes: false }),
        sets_attributes: false,
        ports: &[],
    };
    process::confine(&needs).map_err(|error| {
        let message = format!("the process cannot be confined to its files: {error}");
        Failure::new(Outcome::Io, message, "")
    })
}

fn read_manifest(path: &Path) -> Result<Manifest, Failure> {
    manifest_file::read(path)?.ok_or_else(|| {
        let message = format!("there is no manifest {path:?}");
        Failure::new(Outcome::Refused, message, "the sender writes it: fontana send --manifest")
    })
}

/// Opens the socket of a server.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).map_err(|error| {
        let message = format!("cannot listen at {address}: {error}");
        Failure::new(Outcome::Io, message, "choose another port; with 0 the system does")
    })
}

/// The addresses of a server for its ticket: those that the user gives, or the one of its socket.
///
/// # Errors
/// The socket is that of all interfaces, which is no address for others.
pub(crate) fn addresses(
    listener: &TcpListener,
    given: &[WebAddress],
) -> Result<Vec<WebAddress>, Failure> {
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    let failed = |error| Failure::new(Outcome::Io, format!("cannot listen: {error}"), "");
    let address = listener.local_addr().map_err(failed)?;
    let web = (!address.ip().is_unspecified()).then(|| format!("http://{address}/").parse());
    web.and_then(Result::ok).map(|web| vec![web]).ok_or_else(|| {
        let message = format!("under which address do others reach {address}?");
        let hint = format!("say it for the ticket: --web http://HOST:{}/", address.port());
        Failure::new(Outcome::Usage, message, &hint)
    })
}

/// How content is served.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) listener: TcpListener,
    /// The addresses in the ticket.
    pub(crate) web: Vec<WebAddress>,
    /// Bytes of memory.
    pub(crate) memory: usize,
    /// How its head is signed.
    pub(crate) head_signing: head::Signing,
}

/// Serves content until it is stopped.
pub(crate) fn serve(
    content: MirroredContent,
    serving: Serving,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Outcome, Failure> {
    let Serving { listener, web, memory, head_signing } = serving;
    let about = About::new(&content, web);
    let head = head_signing.head(content.manifest())?;
    free_memory(memory);
    let server = WebServer::builder(content)
        .listener(listener)
        .memory(memory)
        .head(head)
        .cancellation_token(stop)
        .start()?;
    console.result(&about.ticket);
    watch(server, &about, console)
}

/// What is told of content that is served.
struct About {
    ticket: WebTicket,
    files: usize,
    bytes: u64,
    left_out: Vec<Arc<Error>>,
}

impl About {
    fn new(content: &MirroredContent, web: Vec<WebAddress>) -> Self {
        Self {
            ticket: WebTicket { manifest: content.hash(), web },
            files: content.manifest().files().count(),
            bytes: content.manifest().content_length(),
            left_out: content.left_out().to_vec(),
        }
    }
}

/// Workers free the blocks that others have solved.
fn free_memory(memory: usize) {
    if !is_little(memory as u64) {
        return_freed_memory();
    }
}

/// Tells of a server until it is stopped.
fn watch(server: WebServer, about: &About, console: &Console) -> Result<Outcome, Failure> {
    let &About { files, bytes, .. } = about;
    console.result_event(&Line::Serving {
        ticket: about.ticket.to_string(),
        listen: server.address().to_string(),
        manifest: about.ticket.manifest.to_string(),
        files: files as u64,
        bytes,
        fresh: server.has_fresh_symbols(),
    });
    console.note(format_args!(
        "{}, {} at {}{}",
        Count(files as u64, "file"),
        Bytes(bytes),
        server.address(),
        if server.has_fresh_symbols() { ", with fresh symbols" } else { "" }
    ));
    let left_out = console.failures(about.left_out.iter().map(|error| Failure::from(&**error)));
    for event in server.events() {
        match event {
            ServeEvent::Progress(progress) => console.event(&Line::progress(&progress)),
            ServeEvent::Failed(error) => {
                let failure = Failure::from(&*error);
                console.warning(&failure.message, "the answers that need this file are given up");
            }
            _ => {}
        }
    }
    let report = server.join()?;
    let outcome = report.outcome.worst(left_out);
    console.result_event(&Line::summary(&report, outcome));
    let progress = report.progress;
    console.say(format_args!(
        "served {} in {}; computed {}, sent {}",
        Bytes(progress.bytes),
        Count(progress.requests, "request"),
        Count(progress.encoded_symbols, "symbol"),
        progress.sent_symbols
    ));
    Ok(outcome)
}

/// A server of what is being received.
pub(crate) struct Holding {
    server: WebServer,
    web: Vec<WebAddress>,
    head_signing: head::Signing,
}

impl Holding {
    /// Serves what a receiver holds.
    pub(crate) fn start(
        serving: Serving,
        held: &HeldContent,
        stop: &CancellationToken,
    ) -> Result<Self, Failure> {
        let Serving { listener, web, memory, head_signing } = serving;
        free_memory(memory);
        let server = WebServer::receiving(held)
            .listener(listener)
            .memory(memory)
            .cancellation_token(stop)
            .start()?;
        Ok(Self { server, web, head_signing })
    }

    /// Content is accepted: prints the ticket.
    pub(crate) fn announce(&self, manifest: Hash, console: &Console) {
        let ticket = WebTicket { manifest, web: self.web.clone() };
        console.result_event(&Line::Holding {
            ticket: ticket.to_string(),
            listen: self.server.address().to_string(),
            manifest: manifest.to_string(),
        });
        console.result(&ticket);
        console.note(format_args!("verified blocks are at {}", self.server.address()));
    }

    /// Serves the complete content until it is stopped.
    pub(crate) fn complete(
        self,
        content: &MirroredContent,
        console: &Console,
    ) -> Result<Outcome, Failure> {
        let about = About::new(content, self.web);
        let head = self.head_signing.head(content.manifest())?;
        self.server.complete(content, Some(&head))?;
        watch(self.server, &about, console)
    }
}
