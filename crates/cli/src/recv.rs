//! `fontana recv`.

use crate::address;
use crate::args::{AcceptArgument, NamedTicket, ReceiveArguments, SessionFormat};
use crate::events::ReceiveEvent as Line;
use crate::head;
use crate::hook::{Described, Report};
use crate::key_file;
use crate::progress::{Gate, ReceiveBar, inefficiencies, received};
use crate::send::listing;
use crate::serve::{self, Holding, Serving};
use audit::AuditLog;
use changes::{Changes, Runs};
use choose::Chooser;
use confine::{Hook, Sandbox};
use explain::Circumstances;
use fontana::net::receiver::DEFAULT_RECEIVE_BUFFER;
use fontana::net::thread::spawn_scoped;
use fontana::net::{BufferShortfall, FeedbackSocket};
use fontana::wire::{ChannelGroups, MAX_CHANNELS, Manifest, Printable, ReceiverLabel};
use fontana::{
    Acceptance, Addressing, CancellationToken, Error, FluteReception, FontanaReception,
    HeldContent, MirroredContent, Outcome, PreparedReceiver, Rate, ReceiveEvent, ReceiveFormat,
    ReceiveProgress, ReceiveReport, Receiver, ReceiverBuilder, Reporting, SessionKey,
    SimulatedLoss, Versions,
};
use fontana_console::console::Console;
use fontana_console::exit;
use fontana_console::failure::Failure;
use fontana_console::signal::stop_on_signals;
use fontana_console::units::{Bytes, Count, parse_share};
use mirrors::Mirrors;
use recognised::FluteSessions;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use too_long::TooLong;
use unheard::Unheard;

mod audit;
mod changes;
mod choose;
mod clock;
mod confine;
mod credentials;
mod destination;
mod explain;
mod follow;
mod lacking;
mod mirrors;
mod older;
mod published;
mod recognised;
mod sealed;
mod show;
mod too_long;
mod unheard;

pub(crate) fn run(
    arguments: &ReceiveArguments,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Outcome, Failure> {
    let listing = arguments.list.then(|| arguments.of_list());
    let arguments = listing.as_ref().unwrap_or(arguments);
    let mut sandbox = Sandbox::prepare(arguments, console)?;
    let setup = Setup::of(arguments, &mut sandbox)?;
    clock::check(setup.heeds_expiry, arguments.may_report(), console);
    if arguments.watch.is_some() && arguments.format() == SessionFormat::Fontana {
        return follow::run(arguments, setup, sandbox, console, stop);
    }
    let Setup { address, asks, .. } = setup;
    let asks = asks && !arguments.list;
    if asks && (console.is_json() || !io::stdin().is_terminal() || !io::stderr().is_terminal()) {
        let message = "which session? There is no terminal to ask on";
        let hint = "give the ticket that the sender printed: fontana recv 'fontana://...'\n\
                       or take the first session that is heard: fontana recv -y";
        return Err(Failure::new(Outcome::Usage, message, hint));
    }
    if mirrors::are_asked(arguments) {
        published::check(arguments, console)?;
    }
    let audit = audit_log(arguments)?;
    // Opened before the sandbox, which lets no socket listen.
    let serving = arguments.then_serve.map(|at| open_server(at, arguments)).transpose()?;
    let (hook, directory) = (sandbox.take_hook(), setup.directory.clone());
    let held = HeldContent::new();
    let setup = match serving {
        Some(_) => Setup { receiver: setup.receiver.hold(&held), ..setup },
        None => setup,
    };
    let builder = setup.receiver.clone().cancellation_token(stop);
    let mut prepared = destination::open(arguments, setup, console, stop)?;
    let confined = sandbox.confine(&directory, address.port())?;
    if mirrors::are_asked(arguments) {
        let published = published::find(&mut prepared, arguments, console)?;
        if arguments.list {
            console.result(Printable(published.manifest.label()));
            listing::show(&published.manifest, console, Line::Entry);
            return Ok(Outcome::Complete);
        }
    }
    stop_on_signals(stop)?;
    if !arguments.list {
        console.write_aside()?;
    }
    let unheard = mirrors::has_group(arguments)
        .then(|| Unheard::new(arguments, prepared.interfaces(), address));
    let place =
        begin(prepared.interfaces(), prepared.buffer_shortfall(), arguments, address, console);
    confined.tell(console);
    let mut watch = Watch {
        console,
        stop,
        chooser: asks.then(Chooser::new).transpose()?,
        unheard,
        bar: None,
        gate: Gate::each_second(),
        files: 0,
        is_here_already: false,
        is_partial: false,
        offers_shown: 0,
        lists: arguments.list,
        is_piped: arguments.to.is_none() && !console.is_json() && destination::is_pipe(),
        messages_shown: BTreeSet::new(),
        is_corrupt: false,
        described: Described::default(),
        hook,
        hook_outcome: None,
        audit,
        manifest: None,
        too_long: TooLong::default(),
        flute: FluteSessions::new(arguments, address),
        changes: Changes::default(),
        holding: serving.map(|serving| Holding::start(serving, &held, stop)).transpose()?,
        runs: arguments.watch.is_some().then(Arc::default),
    };
    let mut report = watch.receive(prepared)?;
    if let Some(session) = watch.flute.begin(console) {
        watch.chooser = None;
        report = watch.receive(recognised::receiver(builder, session, arguments)?.prepare()?)?;
    }
    let offered = watch.offers_shown > 0 && !watch.flute.has_begun();
    let mut circumstances = Circumstances::new(place, address, arguments, offered);
    circumstances.symbol_size = watch.manifest.as_deref().and_then(too_long::symbol_size);
    if watch.flute.has_begun() {
        circumstances.format = SessionFormat::Flute;
    }
    let is_listed = !watch.lists || report.outcome == Outcome::Complete;
    if arguments.list && is_listed {
        return Ok(Outcome::Complete);
    }
    let outcome = watch.conclude(&report, &circumstances);
    match (watch.holding, watch.manifest) {
        (Some(holding), Some(manifest)) if outcome == Outcome::Complete => {
            let content = MirroredContent::received(&manifest, &directory)?;
            holding.complete(&content, console)
        }
        _ => Ok(outcome),
    }
}

/// The server of what is received.
fn open_server(at: SocketAddr, arguments: &ReceiveArguments) -> Result<Serving, Failure> {
    let listener = serve::listen(at)?;
    let web = serve::addresses(&listener, &[])?;
    let memory = usize::try_from(arguments.memory.memory).unwrap_or(usize::MAX);
    Ok(Serving { listener, web, memory, head_signing: head::Signing::default() })
}

/// Reports where it listens. Returns the address and interfaces as text.
fn begin(
    interfaces: &[String],
    shortfall: Option<&BufferShortfall>,
    arguments: &ReceiveArguments,
    address: SocketAddr,
    console: &Console,
) -> String {
    let has_group = mirrors::has_group(arguments);
    let interface = interfaces.join(", ");
    let place = match has_group {
        true => format!("{address} ({interface})"),
        false => "mirrors".to_owned(),
    };
    if has_group {
        for interface in interfaces {
            address::warn_if_deaf(interface, address.ip(), console);
        }
    }
    console.event(&Line::Session {
        group: if has_group { address.to_string() } else { String::new() },
        interface,
        directory: Printable(
            arguments.to.as_ref().unwrap_or(&arguments.output).as_os_str().as_encoded_bytes(),
        )
        .to_string(),
        ticket: arguments.named.as_ref().and_then(NamedTicket::as_ticket),
    });
    if let Some(shortfall) = shortfall {
        let (got, asked) = (Bytes(shortfall.got as u64), Bytes(shortfall.asked as u64));
        let message = format!("the receive buffer has {got} of {asked}: fast senders overrun it");
        console.warning(&message, &format!("as root: {}", shortfall.remedy));
    }
    if has_group {
        console.say(format_args!("listening on {place}"));
    }
    mirrors::tell(arguments, console);
    place
}

/// The interpreted arguments.
struct Setup {
    receiver: ReceiverBuilder,
    /// Address to listen on.
    address: SocketAddr,
    /// Directory of the files, or of what is not complete.
    directory: PathBuf,
    /// A person chooses the session among those on offer.
    asks: bool,
    /// What has expired is not received.
    heeds_expiry: bool,
}

impl Setup {
    fn of(arguments: &ReceiveArguments, sandbox: &mut Sandbox<'_>) -> Result<Self, Failure> {
        let directory = match (&arguments.to, &arguments.staging) {
            (None, _) => arguments.output.clone(),
            (Some(path), _) if arguments.flute => destination::file(path)?.0,
            (Some(_), Some(staging)) => staging.clone(),
            (Some(_), None) => std::env::temp_dir(),
        };
        destination::check(arguments)?;
        let mut addressing = addressing(arguments)?;
        if addressing.interfaces.is_empty() {
            addressing.interfaces.extend(sandbox.interface());
        }
        let address = addressing.address();
        let (format, asks) = format(arguments, sandbox.take_feedback())?;
        let heeds_expiry = clock::counts(&format);
        let mirrors = Mirrors::of_arguments(arguments);
        let to_size = |size| usize::try_from(size).unwrap_or(usize::MAX);
        let mut receiver = match arguments.ticket() {
            Some(ticket) => Receiver::from_ticket(ticket),
            None => Receiver::builder(),
        }
        .addressing(addressing)
        .format(format)
        .into_dir(directory.clone())
        .overwrite(arguments.replaces_existing())
        .stay_until_verified(arguments.stay)
        .report_files(arguments.audit.is_some())
        .mirrors(mirrors.directories)
        .ticket_mirrors(mirrors.of_ticket, mirrors.senders)
        .mirror_files(mirrors.files)
        .mirror_headers(credentials::of_arguments(arguments)?)
        .from_group(mirrors::has_group(arguments))
        .web_after(arguments.mirrors_after())
        .memory(to_size(arguments.memory.memory))
        .receive_buffer(DEFAULT_RECEIVE_BUFFER.max(to_size(arguments.memory.memory / 32)))
        .max_bytes(arguments.max_size)
        .timeout(arguments.timeout)
        .simulated_loss(simulated_loss()?);
        if let Some(rate) = arguments.max_rate {
            receiver = receiver.max_rate(Rate::bits_per_second(rate));
        }
        // A watched session of plain FLUTE announces files as long as it lasts. Mirrors are asked
        // again and again: what ends that is up to the user.
        let has_no_default = arguments.watch.is_some() || !mirrors::has_group(arguments);
        let silence = arguments.silence.or(has_no_default.then_some(Duration::ZERO));
        if let Some(silence) = silence {
            receiver = receiver.give_up_after_silence((!silence.is_zero()).then_some(silence));
        }
        if arguments.watch.is_some() && arguments.ticket().is_some_and(|t| t.manifest.is_some()) {
            // A ticket for one version has a number that follows from its content.
            receiver = receiver.tsi(None);
        }
        Ok(Self { receiver, address, directory, asks, heeds_expiry })
    }
}

/// The share of packets that a test has this receiver drop: `FONTANA_SIMULATE_LOSS=10%`, with
/// a seed `10%,7`.
fn simulated_loss() -> Result<Option<SimulatedLoss>, Failure> {
    const NAME: &str = "FONTANA_SIMULATE_LOSS";
    let Ok(text) = std::env::var(NAME) else { return Ok(None) };
    let (share, seed) = text.split_once(',').unwrap_or((&text, "0"));
    match (parse_share(share), seed.parse()) {
        (Ok(probability), Ok(seed)) => Ok(Some(SimulatedLoss { probability, seed })),
        _ => {
            let message = format!("{NAME}={text}: a percentage is expected, and perhaps a seed");
            Err(Failure::new(Outcome::Usage, message, "unset it, or give: 10%,7"))
        }
    }
}

/// Bytes of an audit log, which is then renamed.
const AUDIT_BYTES: u64 = 10_000_000;

/// The audit log, if one is asked for.
fn audit_log(arguments: &ReceiveArguments) -> Result<Option<AuditLog>, Failure> {
    let key = arguments.ticket().and_then(|ticket| ticket.key).or(arguments.key);
    let open = |path| AuditLog::open(path, AUDIT_BYTES, key);
    arguments.audit.as_deref().map(open).transpose()
}

/// Address, channels and interface to listen on.
fn addressing(arguments: &ReceiveArguments) -> Result<Addressing, Failure> {
    let mut addressing = match arguments.ticket() {
        Some(ticket) => Addressing::of_ticket(ticket),
        None => Addressing {
            // As many channels as the head declares, on the groups after the first one.
            channels: ChannelGroups::Consecutive(MAX_CHANNELS),
            ..Addressing::to(address::group(arguments.group.as_deref(), &arguments.interfaces)?)
        },
    };
    addressing.interfaces.clone_from(&arguments.interfaces);
    if addressing.interfaces.is_empty() {
        addressing.interfaces.extend(arguments.ticket().and_then(address::source_interface));
    }
    // A key alone does not say on which network its sender is.
    if addressing.interfaces.is_empty() && arguments.named.is_none() && arguments.key.is_some() {
        addressing.interfaces = address::multicast_interfaces(addressing.address().ip(), None);
    }
    Ok(addressing)
}

/// The format and its options, and whether a person chooses the session.
fn format(
    arguments: &ReceiveArguments,
    feedback: Option<FeedbackSocket>,
) -> Result<(ReceiveFormat, bool), Failure> {
    let ticket = arguments.ticket();
    let mut fontana = ticket.map_or_else(FontanaReception::default, FontanaReception::from_ticket);
    if let Some(NamedTicket::Web(ticket)) = &arguments.named {
        fontana.manifest = Some(ticket.manifest);
    }
    match (&fontana.publisher, arguments.key) {
        (Some(named), Some(key)) if *named != key => {
            let message = format!("the ticket's key is {named}, and --key is another one");
            return Err(Failure::new(Outcome::Usage, message, "leave one of them out"));
        }
        _ => fontana.publisher = fontana.publisher.or(arguments.key),
    }
    // A person cannot choose among plain FLUTE and FCAST sessions: they do not describe their
    // content.
    let takes_first = arguments.named.is_some()
        || arguments.key.is_some()
        || arguments.yes
        || arguments.format() != SessionFormat::Fontana
        || arguments.watch.is_some();
    let takes_first = takes_first && !arguments.list;
    fontana.acceptance = if takes_first { Acceptance::Automatic } else { Acceptance::Ask };
    fontana.only = arguments.only.clone();
    fontana.skip_existing = arguments.skips_existing();
    fontana.all_or_nothing = arguments.all_or_nothing;
    fontana.delete = arguments.delete;
    if arguments.delete && fontana.publisher.is_none() && !arguments.flute {
        let message = "--delete needs a publisher: only what its versions created is deleted";
        let hint = "give the sender's key: a ticket with key=, or --key";
        return Err(Failure::new(Outcome::Usage, message, hint));
    }
    // On the disk: 512 MiB, more than any fragments that are being sent, with the default memory.
    fontana.stream_window = arguments.memory.memory.saturating_mul(2);
    if fontana.group_key.is_some() {
        key_file::keep_secrets();
    }
    if let Some(path) = &arguments.group_key {
        if fontana.group_key.is_some() {
            let message = "--group-key, and the ticket has a secret: its packets have another key";
            return Err(Failure::new(Outcome::Usage, message, "leave --group-key out"));
        }
        key_file::refuse_other_formats(arguments.format())?;
        fontana.group_key = Some(key_file::read(path, key_file::KEYGEN_GROUP)?);
    }
    fontana.reporting = feedback.map(|socket| reporting(arguments, socket)).transpose()?;
    fontana.sharing = arguments.sharing();
    let accepts = |what| arguments.accept.contains(&what);
    fontana.ignore_expiry = accepts(AcceptArgument::Expired);
    if accepts(AcceptArgument::Old) {
        fontana.versions = Versions::Any;
    }
    if arguments.watch.is_some() {
        fontana.manifest = None;
    }
    let format = match arguments.format() {
        SessionFormat::Fontana => ReceiveFormat::Fontana(fontana),
        SessionFormat::Flute => ReceiveFormat::Flute(flute(arguments)?),
        SessionFormat::Fcast => ReceiveFormat::Fcast,
    };
    Ok((format, !takes_first))
}

/// The options of a reception of plain FLUTE.
fn flute(arguments: &ReceiveArguments) -> Result<FluteReception, Failure> {
    let mut flute = FluteReception::default();
    flute.watch = arguments.watch.is_some();
    flute.only = arguments.only.clone();
    flute.skip_existing = arguments.skips_existing();
    flute.list = arguments.list;
    flute.delete = arguments.delete;
    flute.file_name = arguments.to.as_deref().map(destination::file).transpose()?.map(|to| to.1);
    Ok(flute)
}

/// How this receiver reports.
fn reporting(
    arguments: &ReceiveArguments,
    socket: FeedbackSocket,
) -> Result<Box<Reporting>, Failure> {
    let mut reporting = Reporting::new(socket, exit::code);
    reporting.label = arguments.label.clone().unwrap_or_else(label_of_host);
    reporting.collectors = arguments.ticket().map_or_else(Vec::new, |it| it.collectors().collect());
    if let Some(path) = &arguments.identity {
        reporting.identity = Some(key_file::read(path, key_file::KEYGEN)?);
    }
    Ok(Box::new(reporting))
}

/// The name of this host, as far as it is a label.
fn label_of_host() -> ReceiverLabel {
    let system = rustix::system::uname();
    let name = system.nodename().to_str().unwrap_or_default();
    name.parse().unwrap_or_default()
}

/// Shows the events of a receiver.
struct Watch<'a> {
    console: &'a Console,
    stop: &'a CancellationToken,
    /// Present until a session is chosen.
    chooser: Option<Chooser>,
    /// Present until it has told why no packet may arrive.
    unheard: Option<Unheard<'a>>,
    bar: Option<ReceiveBar>,
    gate: Gate,
    files: u64,
    /// All symbols of the content were here before.
    is_here_already: bool,
    /// The counters are not those of the whole reception, or not of it alone: some symbols were
    /// here before, or a person has chosen the session.
    is_partial: bool,
    offers_shown: usize,
    /// The names in the first session are still to be listed.
    lists: bool,
    /// Standard output is a pipe, and nothing is written to it.
    is_piped: bool,
    /// Messages that were shown: the same error often ends many objects.
    messages_shown: BTreeSet<String>,
    is_corrupt: bool,
    /// The description of the content for the hook.
    described: Described,
    /// The program that runs when it is complete.
    hook: Option<Hook<'a>>,
    /// The outcome of the program that has run while the receiver stays for others.
    hook_outcome: Option<Outcome>,
    audit: Option<AuditLog>,
    /// The manifest that was accepted.
    manifest: Option<Arc<Manifest>>,
    too_long: TooLong,
    flute: FluteSessions,
    changes: Changes,
    /// Serves what is received.
    holding: Option<Holding>,
    /// The runs of the program while a session of plain FLUTE is watched.
    runs: Option<Arc<Runs>>,
}

impl Watch<'_> {
    /// Receives until it is over.
    fn receive(&mut self, prepared: PreparedReceiver) -> Result<ReceiveReport, Failure> {
        let Some(mut hook) = self.hook.take_if(|_| self.runs.is_some()) else {
            return self.receive_events(prepared);
        };
        let runs = self.runs.clone().unwrap_or_default();
        let report = std::thread::scope(|scope| {
            let thread =
                spawn_scoped(scope, "exec", || runs.work(&mut hook)).map_err(Error::from)?;
            let report = self.receive_events(prepared);
            runs.end();
            // Its failures are shown, and a panic has ended the program.
            let _ = thread.join();
            report
        });
        self.show_runs();
        self.hook_outcome = Some(runs.outcome());
        report
    }

    /// Shows how the program has failed.
    fn show_runs(&self) {
        let runs = self.runs.iter();
        runs.flat_map(|runs| runs.failures()).for_each(|failure| self.console.failure(&failure));
    }

    fn receive_events(&mut self, prepared: PreparedReceiver) -> Result<ReceiveReport, Failure> {
        let receiver = prepared.start()?;
        for event in receiver.events() {
            if let Some(session) = self.handle(&event) {
                receiver.accept(session);
            }
            if self.flute.ends_reception() {
                receiver.stop();
            }
        }
        let report = receiver.join();
        if let Some(bar) = &self.bar {
            bar.clear();
        }
        Ok(report?)
    }

    /// Handles an event. Returns the session that a person has chosen, if one was.
    fn handle(&mut self, event: &ReceiveEvent) -> Option<SessionKey> {
        self.show(event);
        if let Some(runs) = &self.runs {
            if let Some(report) = self.changes.note(event) {
                runs.request(report);
            }
            self.show_runs();
        }
        if let &ReceiveEvent::Sharing { manifest, verified, bytes, .. } = event {
            let report = Report::new(manifest, verified, bytes, &self.described);
            self.hook_outcome = Some(self.run_hook_with(&report));
        }
        match self.chooser.as_mut()?.poll(self.console) {
            ControlFlow::Continue(chosen) => chosen.filter(|&session| !self.flute.take(session)),
            ControlFlow::Break(()) => {
                self.stop.cancel();
                None
            }
        }
    }

    /// What a complete reception amounts to.
    fn success(&self, progress: &ReceiveProgress, bytes: u64) -> String {
        if self.is_here_already && progress.stats.fresh == 0 {
            let (files, bytes) = (Count(self.files, "file"), Bytes(bytes));
            format!("already there, verified: {files}, {bytes}")
        } else {
            let line = received(progress, bytes, self.files);
            match inefficiencies(progress).filter(|_| !self.is_partial) {
                Some(inefficiencies) => format!("{line}, {inefficiencies}"),
                None => line,
            }
        }
    }

    fn conclude(&mut self, summary: &ReceiveReport, circumstances: &Circumstances) -> Outcome {
        // A consumer that closes its input has read enough: that is no error.
        let hung_up = summary.delivery.is_some_and(|delivery| delivery.closed_by_consumer);
        self.show_failures(summary);
        let of_fontana = self.flute.failure();
        if let Some(failure) = &of_fontana {
            self.show_failure(failure);
        } else if summary.outcome == Outcome::Complete {
            self.console.say(self.success(&summary.progress, summary.bytes));
        } else if self.messages_shown.is_empty() && !self.console.is_closed() && !hung_up {
            self.show_failure(&circumstances.explain(summary));
        }
        if let Some(files) = &summary.incomplete {
            lacking::show(files, self.console);
        }
        if summary.progress.kernel_drops > 0 {
            let drops = Count(summary.progress.kernel_drops, "packet");
            self.console.note(format_args!("this host was too slow: its kernel dropped {drops}"));
        }
        self.audit_version(summary);
        mirrors::show_report(summary, self.console);
        if let Some(shared) = &summary.shared {
            self.console.event(&Line::shared(shared));
            let (used, sent) =
                (Count(shared.symbols_used, "symbol"), Count(shared.symbols_sent, "symbol"));
            let others = Count(shared.members.into(), "other receiver");
            if shared.members > 0 {
                self.console.note(format_args!("{used} came from {others}; {sent} sent to them"));
            }
        }
        if summary.is_known_to_sender == Some(false) {
            self.console.note("the sender has not said that it knows of this end");
        }
        // The receiver was stopped.
        let received = of_fontana.map_or(summary.outcome, |failure| failure.outcome);
        let outcome = received.worst(self.run_hook(summary)).worst(self.end_audit());
        let mut line = Line::summary(summary);
        line.set_verdict(outcome);
        self.console.result_event(&line);
        outcome
    }

    /// Shows what has failed, but for what was shown already.
    fn show_failures(&mut self, summary: &ReceiveReport) {
        let failures = summary.failures.iter().map(|error| Failure::from(&**error));
        let news: Vec<_> = failures
            .filter(|failure| self.messages_shown.insert(failure.message.clone()))
            .collect();
        self.console.failures(news);
    }

    /// Records a complete version.
    fn audit_version(&mut self, summary: &ReceiveReport) {
        if let Some(audit) = self.audit.as_mut().filter(|_| summary.outcome == Outcome::Complete) {
            audit.complete(summary.bytes);
        }
    }

    /// Reports an audit log that is not complete. Returns its outcome.
    fn end_audit(&self) -> Outcome {
        match self.audit.as_ref().and_then(AuditLog::failure) {
            None => Outcome::Complete,
            Some(failure) => {
                self.console.failure(&failure);
                failure.outcome
            }
        }
    }

    /// Runs the hook, if there is one and the reception is complete, unless it has run when the
    /// files got their names. Returns its outcome.
    fn run_hook(&mut self, summary: &ReceiveReport) -> Outcome {
        if let Some(outcome) = self.hook_outcome.take() {
            return outcome;
        }
        if summary.outcome != Outcome::Complete {
            return Outcome::Complete;
        }
        let described = &self.described;
        let report = Report::new(summary.manifest, summary.verified, summary.bytes, described);
        self.run_hook_with(&report)
    }

    fn run_hook_with(&mut self, report: &Report) -> Outcome {
        match self.hook.as_mut().map(|hook| hook.run(report)) {
            None | Some(Ok(())) => Outcome::Complete,
            Some(Err(failure)) => {
                self.console.failure(&failure);
                failure.outcome
            }
        }
    }
}
