//! A web server of content: the files, their manifest, and fresh symbols of them.
//!
//! ```no_run
//! use fontana::{MirroredContent, WebServer};
//!
//! let content = MirroredContent::describe(&["photos".into()], MirroredContent::BLOCK_BYTES, 1)?;
//! let server = WebServer::builder(content).listen("127.0.0.1:7780".parse().unwrap()).start()?;
//! println!("{}", server.address());
//! for event in server.events() {
//!     println!("{event:?}");
//! }
//! # Ok::<(), fontana::Error>(())
//! ```
//!
//! ```text
//!  connections ─▶ routes ─┬─▶ files      ranges of the files of the manifest
//!       │                 └─▶ draw ─▶ symbols   encoded once for all clients
//!     meter                    body: pieces that wait for a client
//! ```
//!
//! Requests are hostile: their heads are bounded, nothing but what the manifest names is read, and
//! clients, what waits for each, and the memory of symbols have limits.

mod body;
mod connections;
mod counters;
mod draw;
mod files;
mod memory;
mod meter;
mod report;
mod routes;
mod sites;
mod symbols;

use crate::cancellation::CancellationToken;
use crate::content::BlockVerifier;
use crate::error::Error;
use crate::memory::DEFAULT_MEMORY;
use crate::mirror_head::MirrorHead;
use crate::mirrored::MirroredContent;
use crate::outcome::Outcome;
use crate::receive::HeldContent;
use crate::session::{Events, Running};
use crate::system::default_workers;
use counters::Counters;
use fontana_net::ThreadError;
use fontana_net::thread::spawn_scoped;
use routes::router;
use sites::Sites;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

pub use report::{ServeProgress, ServeReport};

/// Threads that read files, beside those that compute symbols.
const READERS: usize = 8;
/// How often the server looks whether it is stopped, and how often it reports its progress.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// Errors that are reported: each message once.
const MAX_MESSAGES: usize = 1000;
/// Longest wait for threads that read or compute when the server ends.
const END_TIME: Duration = Duration::from_secs(2);

/// What a server has at its beginning.
#[derive(Debug)]
enum Served {
    Complete(Box<MirroredContent>),
    Held(HeldContent),
}

/// The options of a web server.
#[derive(Debug)]
#[must_use = "a builder does nothing until `start`"]
pub struct WebServerBuilder {
    content: Served,
    listen: SocketAddr,
    listener: Option<TcpListener>,
    head: Option<MirrorHead>,
    memory: usize,
    workers: usize,
    token: CancellationToken,
}

impl WebServerBuilder {
    /// Listens at this address; port 0 is any free one. The default is
    /// [`WebServer::DEFAULT_ADDRESS`]: this host alone.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = address;
        self
    }

    /// Serves the connections of this listener, instead of opening one.
    pub fn listener(mut self, listener: TcpListener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Tells receivers what it has by this head, which the publisher may have signed: they need the
    /// address of the server, and no ticket.
    pub fn head(mut self, head: MirrorHead) -> Self {
        self.head = Some(head);
        self
    }

    /// Uses at most this much memory, in bytes, besides a 64th of it for each client, at most 4
    /// MiB.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Stops when this token is cancelled.
    pub fn cancellation_token(mut self, token: &CancellationToken) -> Self {
        self.token = token.child_token();
        self
    }

    /// Serves on its own threads.
    ///
    /// # Errors
    /// The address cannot be listened at, or the system starts no thread.
    pub fn start(self) -> Result<WebServer, Error> {
        let Self { content, listen, listener, head, memory, workers, token } = self;
        let open = || TcpListener::bind(listen);
        let listener = listener.map_or_else(open, Ok).map_err(Error::system("listen"))?;
        listener.set_nonblocking(true).map_err(Error::system("listen"))?;
        let address = listener.local_addr().map_err(Error::system("listen"))?;
        let counters = Arc::new(Counters::default());
        let (held, content) = match content {
            Served::Complete(content) => (None, Some(content)),
            Served::Held(held) => (Some(held), None),
        };
        let sites = Arc::new(Sites::new(held, counters, workers, memory));
        let mut verifiers = Vec::new();
        if let Some(content) = content {
            sites.complete(&content, head.as_ref())?;
            verifiers.extend(content.verifiers.into_values());
        }
        let own = Arc::clone(&sites);
        let work = move |token: &CancellationToken, emit: &mut dyn FnMut(ServeEvent)| {
            run(listener, own, &verifiers, workers, token, emit)
        };
        let running = Running::spawn("serve", token, ServeEvent::replaces, work)?;
        Ok(WebServer { running, address, sites })
    }
}

/// A running web server of content. Dropping it stops it.
pub struct WebServer {
    running: Running<ServeEvent, ServeReport>,
    address: SocketAddr,
    sites: Arc<Sites>,
}

impl WebServer {
    /// Default of [`WebServerBuilder::listen`].
    pub const DEFAULT_ADDRESS: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7780);

    /// The options for serving `content`.
    pub fn builder(content: MirroredContent) -> WebServerBuilder {
        Self::builder_of(Served::Complete(Box::new(content)))
    }

    /// The options for serving what a receiver [holds](crate::ReceiverBuilder::hold): blocks, as
    /// soon as they are verified. Until content is accepted, clients are told to ask again.
    pub fn receiving(held: &HeldContent) -> WebServerBuilder {
        Self::builder_of(Served::Held(held.clone()))
    }

    fn builder_of(content: Served) -> WebServerBuilder {
        WebServerBuilder {
            content,
            listen: Self::DEFAULT_ADDRESS,
            listener: None,
            head: None,
            memory: DEFAULT_MEMORY,
            workers: default_workers(),
            token: CancellationToken::new(),
        }
    }

    /// The address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it has fresh symbols: all objects are of RaptorQ, and are complete. If not, it has
    /// files.
    pub fn has_fresh_symbols(&self) -> bool {
        self.sites.present().is_some_and(|site| site.symbols.is_some())
    }

    /// The content that was being received is complete: from the next request on, the server has
    /// all of it, this head if there is one, and fresh symbols.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn complete(
        &self,
        content: &MirroredContent,
        head: Option<&MirrorHead>,
    ) -> Result<(), Error> {
        self.sites.complete(content, head)
    }

    /// The events of the server.
    pub fn events(&self) -> Events<ServeEvent> {
        self.running.events()
    }

    /// Requests its end.
    pub fn stop(&self) {
        self.running.stop();
    }

    /// Waits until it was stopped.
    ///
    /// # Errors
    /// The system starts no thread.
    pub fn join(self) -> Result<ServeReport, Error> {
        self.running.join()
    }
}

impl std::fmt::Debug for WebServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebServer").field("address", &self.address).finish_non_exhaustive()
    }
}

/// An event of a web server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ServeEvent {
    /// What it has done so far. Emitted each second.
    Progress(ServeProgress),
    /// A file cannot be read, has changed, or has other bytes than its manifest says: the answer
    /// was given up. Emitted once for each message.
    Failed(Arc<Error>),
}

impl ServeEvent {
    fn replaces(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Progress(_), Self::Progress(_)))
    }
}

/// Serves until it is stopped, or nothing is left: all objects have other bytes than the manifest
/// says.
fn run(
    listener: TcpListener,
    sites: Arc<Sites>,
    verifiers: &[Arc<BlockVerifier>],
    workers: usize,
    token: &CancellationToken,
    emit: &mut dyn FnMut(ServeEvent),
) -> Result<ServeReport, Error> {
    let counters = Arc::clone(&sites.counters);
    let (connecting, blocking) = (workers.clamp(1, 4), workers + READERS);
    check_threads(connecting + blocking)?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(connecting)
        .max_blocking_threads(blocking)
        .thread_name("serve")
        .enable_io()
        .enable_time()
        .build()
        .map_err(Error::system("start the threads of a web server"))?;
    let listener = {
        let _runtime = runtime.enter();
        tokio::net::TcpListener::from_std(listener).map_err(Error::system("listen"))?
    };
    runtime.spawn(connections::serve(listener, router(sites), Arc::clone(&counters)));
    let (mut messages, mut outcome) = (BTreeSet::new(), Outcome::Interrupted);
    let mut report = |emit: &mut dyn FnMut(ServeEvent)| {
        for error in counters.take_errors() {
            let message = error.to_string();
            outcome = outcome.worst(error.outcome());
            if messages.len() < MAX_MESSAGES && messages.insert(message) {
                emit(ServeEvent::Failed(error));
            }
        }
    };
    let mut reported = Instant::now();
    let mut is_left = true;
    while is_left && !token.is_cancelled() {
        std::thread::sleep(LOOK_EVERY);
        is_left = verifiers.is_empty() || verifiers.iter().any(|verifier| !verifier.is_wrong());
        report(emit);
        if reported.elapsed() >= PROGRESS_EVERY {
            reported = Instant::now();
            emit(ServeEvent::Progress(counters.progress()));
        }
    }
    if !is_left {
        // The answer that has found the last wrong block names its file.
        std::thread::sleep(LOOK_EVERY);
    }
    runtime.shutdown_timeout(END_TIME);
    // Those of the answers that it was still making.
    report(emit);
    if !is_left {
        outcome = outcome.worst(Outcome::SourceChanged);
    }
    Ok(ServeReport { outcome, progress: counters.progress() })
}

/// Starts so many threads, and ends them. The runtime panics where it cannot start one, and then
/// waits for the others without end.
fn check_threads(count: usize) -> Result<(), ThreadError> {
    let held = Mutex::new(());
    std::thread::scope(|scope| {
        let _until_all_are_started = held.lock();
        (0..count).try_for_each(|_| spawn_scoped(scope, "serve", || drop(held.lock())).map(drop))
    })
}

#[cfg(test)]
mod tests;
