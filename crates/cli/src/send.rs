//! `fontana send`.

use crate::address;
use crate::args::{Fec, LayersArgument, SendArguments, SessionFormat};
use crate::events::{SendEvent, Sent, passes};
use crate::key_file;
use crate::manifest_file;
use crate::progress::{Gate, PACKET_HEADER, SendBar};
use crate::version_file::VersionFile;
use fontana::net::{InterfaceSelector, IpVersion};
use fontana::seal::GroupSeal;
use fontana::wire::{ContentEncoding, SEAL_BYTES, SealMode, Ticket, Tsi};
use fontana::{
    Addressing, CancellationToken, Code, Error, ErrorKind, FcastFormat, Filter, FluteFormat,
    FontanaFormat, Format, Outcome, SendEvent as Event, SendMode, SendProgress, SendReport, Sender,
    SenderBuilder, SessionDescription, SetupError, StdinCopy,
};
use fontana_console::console::Console;
use fontana_console::exit;
use fontana_console::failure::Failure;
use fontana_console::json::{seconds, verdict};
use fontana_console::signal::stop_on_signals;
use fontana_console::units::{Bytes, Count, ExactRate, Time};
use name_list::NameList;
use networks::OnNetwork;
use reports::ReportWatch;
use shortfall::Shortfall;
use standard_input::Input;
use std::path::PathBuf;
use std::time::Duration;

mod certificate_file;
mod channels;
mod clocks;
mod confine;
mod folder;
mod keys;
pub(crate) mod listing;
mod name_list;
mod networks;
mod plain;
mod reports;
mod shortfall;
mod standard_input;
mod stream;
mod table;
mod ticket_file;
mod warnings;

pub(crate) fn run(
    arguments: &SendArguments,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Outcome, Failure> {
    let mut plan = Plan::of(arguments)?;
    networks::check(arguments)?;
    let Some(Chosen { content, rest, copy: _copy }) = Chosen::of(arguments, console)? else {
        return stream::run(arguments, plan, given_name(arguments), console, stop);
    };
    plan.is_growing = rest.is_some();
    let (manifest, asks) = (plan.format.manifest.is_some(), plan.format.reports.is_some());
    plan.format.keys = keys::of_files(arguments, manifest, asks, console)?;
    let outline = Outline::of(arguments, &plan)?;
    address::warn_if_deaf(&outline.interface, plan.addressing.address().ip(), console);
    // A mirror's own key signs no versions.
    let key = arguments.sign.as_deref().filter(|_| arguments.certificate.is_none());
    let mut versions = key.filter(|_| arguments.watch.is_some()).map(VersionFile::beside);
    if arguments.watch.is_some() && arguments.format() == SessionFormat::Fontana && key.is_none() {
        let (signer, beside) =
            keys::of_folder(arguments, &content.files, plan.format.keys.as_ref(), console)?;
        (plan.format.signer, versions) = (Some(signer), beside);
    }
    if let Some(highest) = versions.as_ref().and_then(VersionFile::highest) {
        plan.format.version = highest;
    }
    let mut sender = content.sender(&plan, arguments).cancellation_token(stop);
    let signer = plan.format.signer.as_ref().filter(|_| arguments.watch.is_some());
    if let (Some(signer), None) = (signer, arguments.tsi()) {
        // The number that all versions have.
        sender = sender.tsi(Some(Tsi::of_publisher(&signer.public_key())));
    }
    if arguments.watch.is_some() && !arguments.dry_run {
        let reports = plan.format.reports.as_ref();
        let (files, to) = (&content.files, &plan.addressing);
        let program = confine::confine(arguments, files, to, reports, console)?;
        let outlet = folder::Outlet { outline: &outline, program: program.as_ref(), versions };
        return folder::run(arguments, sender, outlet, console, stop);
    }
    // Hashing a large file takes a while. There is nothing to clean up yet: a signal ends the
    // program.
    let prepared = sender.prepare()?;
    let session = prepared.description().clone();
    let is_new = plan.format.manifest.is_none();
    if let Some(path) = arguments.manifest.as_deref().filter(|_| is_new && !arguments.dry_run) {
        keys::write_beside_manifest(arguments, plan.format.keys.as_ref(), &session)?;
        manifest_file::write(path, &session.manifest)?;
    }
    if !is_new {
        console.note("going on with the manifest: repair symbols of the objects that it describes");
    }
    if !arguments.dry_run {
        keys::keep_drawn(arguments, plan.format.keys.as_ref(), &session)?;
    }
    let further = networks::prepare(arguments, &plan, &content, &session, stop)?;
    let ticket = match arguments.watch {
        Some(_) => session.lasting_ticket(),
        None => session.ticket.clone(),
    };
    let tickets = networks::tickets(&ticket, &further);
    let tickets: Vec<_> = tickets.iter().flat_map(|ticket| outline.tickets(ticket)).collect();
    networks::tell_left_out(&plan, &outline.interface, console);
    reports::tell_unasked(&plan.format, &session.ticket, console);
    let outline = Outline { interface: networks::names(&outline.interface, &further), ..outline };
    // What is written beside files of the user is written before this process is confined.
    if let Some(key) = key.filter(|_| !arguments.dry_run) {
        VersionFile::keep_chosen(key, session.manifest.version(), console);
    }
    let reports = plan.format.reports.as_ref().filter(|_| !arguments.dry_run);
    let (files, to) = (&content.files, &plan.addressing);
    let program = confine::confine(arguments, files, to, reports, console)?;
    // Before others can know of the session: who has its ticket may stop the program.
    stop_on_signals(stop)?;
    if !arguments.dry_run {
        console.write_aside()?;
    }
    let is_drawn_later = arguments.dry_run && arguments.new_ticket;
    if let Some(path) = arguments.ticket_file.as_deref().filter(|_| !is_drawn_later) {
        ticket_file::write(path, &tickets)?;
    }
    let tickets = if is_drawn_later { Vec::new() } else { tickets };
    outline.announce(&session, &tickets, arguments, console);
    let left_out = show_left_out(&session, console);
    if arguments.dry_run {
        return Ok(left_out);
    }
    let interface = plan.addressing.interface()?.name;
    let on_first = OnNetwork { interface, rate: plan.rate, prepared };
    let watched = networks::Watched {
        arguments,
        outline: &outline,
        session: &session,
        program: program.as_ref(),
    };
    networks::send(on_first, further, rest, &watched, console, stop)
}

/// Shows what is not in the content. Returns the outcome that follows.
fn show_left_out(session: &SessionDescription, console: &Console) -> Outcome {
    if session.skipped > 0 {
        let skipped = Count(session.skipped, "file or directory");
        console.say(format_args!("skipped of this program's own: {skipped}"));
    }
    console.failures(session.left_out.iter().map(|error| Failure::from(&**error)))
}

/// What is sent, but for a stream.
struct Chosen {
    content: Named,
    /// Names of files that join the running session.
    rest: Option<NameList>,
    /// Standard input, which is deleted when this is dropped.
    copy: Option<StdinCopy>,
}

impl Chosen {
    /// The files that the arguments name; `None` if it is a stream.
    fn of(arguments: &SendArguments, console: &Console) -> Result<Option<Self>, Failure> {
        let name = given_name(arguments);
        let content = match standard_input::of(arguments)? {
            Input::Stream => return Ok(None),
            Input::Files => Named { files: arguments.files.clone(), name },
            Input::Copy(directory) => {
                let copy = standard_input::copy(directory, console)?;
                let name = name.or_else(|| Some(standard_input::NAME.into()));
                let content = Named { files: vec![copy.path()], name };
                return Ok(Some(Self { content, rest: None, copy: Some(copy) }));
            }
        };
        let mut chosen = Self { content, rest: None, copy: None };
        if let Some(list) = &arguments.from_list {
            let list = NameList::open(list, memory(arguments))?;
            let first = list.first_push(arguments.format() == SessionFormat::Fcast)?;
            chosen.content.files.extend(first.names);
            chosen.rest = first.rest;
        }
        if chosen.content.name.is_some()
            && !matches!(&chosen.content.files[..], [path] if !path.is_dir())
        {
            let message = "--name gives one file its name at receivers, and this is not one file";
            let hint = "leave it out, or name one file; a directory: rename it, or send an archive";
            return Err(Failure::new(Outcome::Usage, message, hint));
        }
        Ok(Some(chosen))
    }
}

/// The name at receivers that the user gives the only file.
fn given_name(arguments: &SendArguments) -> Option<Vec<u8>> {
    arguments.name.as_ref().map(|name| name.as_encoded_bytes().to_vec())
}

/// The files to send.
struct Named {
    files: Vec<PathBuf>,
    /// The name of the only file at receivers, if it is another one.
    name: Option<Vec<u8>>,
}

impl Named {
    fn sender(&self, plan: &Plan, arguments: &SendArguments) -> SenderBuilder {
        let sender = plan.sender(arguments, self.files.clone());
        match &self.name {
            Some(name) => sender.name(name.clone()),
            None => sender,
        }
    }
}

/// The interpreted arguments, except the files.
struct Plan {
    addressing: Addressing,
    code: Code,
    /// Where the source pass begins, in parts of 2^32; `None`: the first run has sent it, or
    /// another sender does.
    pass_start: Option<u32>,
    /// Options of the format `Fontana`; other formats use some of them.
    format: FontanaFormat,
    /// An FCAST session takes further files.
    is_growing: bool,
    /// Bits per second, or the most of them.
    rate: u64,
}

impl Plan {
    fn of(arguments: &SendArguments) -> Result<Self, Failure> {
        let addressing = channels::addressing(arguments)?;
        let manifest =
            arguments.manifest.as_deref().map(manifest_file::read).transpose()?.flatten();
        let mut format = FontanaFormat::default();
        format.signer = arguments
            .sign
            .as_deref()
            .map(|path| key_file::read(path, key_file::KEYGEN))
            .transpose()?;
        format.group_seal = group_seal(arguments)?;
        format.symbol_digests = arguments.symbol_digests;
        format.certificate =
            arguments.certificate.as_deref().map(certificate_file::read).transpose()?;
        if format.certificate.is_some() && manifest.is_none() {
            let message = "--certificate without a manifest to mirror";
            let hint = "copy the manifest that it is for from the publisher";
            return Err(Failure::new(Outcome::Usage, message, hint));
        }
        format.reports = reports::collection(arguments, &addressing)?;
        // A stream without a key gets one, and so does a directory that is followed.
        let has_key = format.signer.is_some()
            || keys::are_of_ticket(arguments)
            || arguments.group_key.is_some()
            || arguments.watch.is_some()
            || standard_input::is_stream(arguments);
        if format.reports.is_some() && !has_key {
            let message = "--ask without a key: receivers obey only a publisher that they know";
            return Err(Failure::new(Outcome::Usage, message, "sign the session: --sign KEYFILE"));
        }
        format.expires_after = Some(arguments.expires).filter(|time| !time.is_zero());
        format.version = arguments.content_version;
        format.manifest = manifest;
        if arguments.watch.is_some() && arguments.flute.is_some_and(|flute| flute.gzip) {
            let message = "--watch with --flute=gzip: every version would be compressed again";
            return Err(Failure::new(Outcome::Usage, message, "leave gzip out"));
        }
        format.layering = channels::layering(arguments);
        if arguments.format() != SessionFormat::Fontana && format.layering.is_some() {
            let what = "a plain FLUTE or FCAST session";
            return Err(Error::from(SetupError::OneChannelOnly(what)).into());
        }
        let is_first = format.manifest.is_none();
        Ok(Self {
            addressing,
            code: code(arguments),
            pass_start: is_first.then_some(0),
            format,
            is_growing: false,
            rate: arguments.rate_on(arguments.interfaces.first()),
        })
    }

    /// The same on another interface, number `number` of them, for content that the first session
    /// has described.
    fn on(
        &self,
        arguments: &SendArguments,
        interface: InterfaceSelector,
        session: &SessionDescription,
        number: usize,
    ) -> Self {
        let rate = arguments.rate_on(Some(&interface));
        let addressing = Addressing { interfaces: vec![interface], ..self.addressing.clone() };
        let mut format = self.format.clone();
        format.manifest = Some(session.manifest.clone());
        // At a receiver on all of them the passes meet when the content is complete.
        let start = (number as u64) << 32;
        let pass_start = self.pass_start.map(|_| (start / arguments.networks() as u64) as u32);
        Self { addressing, code: self.code, pass_start, format, is_growing: false, rate }
    }

    fn sender(&self, arguments: &SendArguments, files: Vec<PathBuf>) -> SenderBuilder {
        let filter =
            Filter { include: arguments.include.clone(), exclude: arguments.exclude.clone() };
        Sender::builder(files)
            .addressing(self.addressing.clone())
            .format(self.format(arguments))
            .controlled_network(arguments.controlled_network)
            .rate(fontana::Rate::bits_per_second(self.rate))
            .peak_window(arguments.burst)
            .tsi(arguments.tsi())
            .mode(match arguments.push {
                Some(repair_permille) => SendMode::Push { repair_permille },
                None => SendMode::OnDemand,
            })
            .ordering(arguments.order.ordering())
            .profile(arguments.order.profile())
            .code(self.code)
            .block_symbols(arguments.block_symbols.unwrap_or(fontana::DEFAULT_BLOCK_SYMBOLS))
            .symbol_size(arguments.symbol_size)
            .source_pass(self.pass_start.is_some())
            .pass_start(self.pass_start.unwrap_or_default())
            .mirrored(arguments.manifest.is_some() || arguments.networks() > 1)
            .filter(filter)
            .memory(memory(arguments) / arguments.networks())
            .scratch(match arguments.dry_run {
                true => Some(0),
                false => arguments.scratch.map(|bytes| bytes / arguments.networks() as u64),
            })
    }

    fn format(&self, arguments: &SendArguments) -> Format {
        match arguments.format() {
            SessionFormat::Fontana => Format::Fontana(self.format.clone()),
            SessionFormat::Flute => {
                let mut flute = FluteFormat::default();
                if let Some(chosen) = arguments.flute {
                    flute.version = chosen.version;
                    if chosen.gzip {
                        flute.content_encoding = ContentEncoding::Gzip;
                    }
                }
                Format::Flute(flute)
            }
            SessionFormat::Fcast => {
                let mut fcast = FcastFormat::default();
                fcast.slice_bytes = arguments.fcast.flatten();
                fcast.growing = self.is_growing;
                Format::Fcast(fcast)
            }
        }
    }
}

fn memory(arguments: &SendArguments) -> usize {
    usize::try_from(arguments.memory.memory).unwrap_or(usize::MAX)
}

/// The code of `--fec`.
fn code(arguments: &SendArguments) -> Code {
    match arguments.fec() {
        Fec::Raptorq => Code::RaptorQ,
        Fec::Raptor => Code::Raptor,
        Fec::Rs => Code::ReedSolomon,
        Fec::Tornado(code) => Code::Tornado(code),
        Fec::Lt => Code::Lt,
        Fec::LtStrict => Code::LtStrict,
        Fec::None => Code::None,
    }
}

/// How packets are sealed, if a group key is given.
fn group_seal(arguments: &SendArguments) -> Result<Option<GroupSeal>, Failure> {
    let Some(path) = &arguments.group_key else { return Ok(None) };
    key_file::refuse_other_formats(arguments.format())?;
    let key = key_file::read(path, key_file::KEYGEN_GROUP)?;
    Ok(Some(GroupSeal { key, mode: SealMode::Encrypted }))
}

/// Shortest pass over the content of which the user hears how to send faster.
const LONG_PASS: Duration = Duration::from_secs(60);

/// The description of a session before anything is sent.
struct Outline {
    addressing: Addressing,
    interface: String,
    /// Bits per second of all channels, and whether that is the most of an automatic rate.
    rate_bits_per_second: u64,
    is_automatic: bool,
    /// That of the interface, if it is known.
    speed: Option<u64>,
    /// Bytes of a packet before its symbol, without IP and UDP headers.
    packet_header: u64,
}

impl Outline {
    fn of(arguments: &SendArguments, plan: &Plan) -> Result<Self, Failure> {
        let Plan { addressing, format, .. } = plan;
        let following = format.reports.as_ref().and_then(|reports| reports.rate);
        let interface = addressing.interface()?;
        Ok(Self {
            is_automatic: following.is_some_and(|following| following.automatic),
            speed: interface.bits_per_second(),
            interface: interface.name,
            addressing: addressing.clone(),
            rate_bits_per_second: match &arguments.layers {
                // Their sum is at most the rate.
                Some(LayersArgument::Rates(rates)) => rates.iter().sum(),
                _ => arguments.rate(),
            },
            packet_header: match arguments.group_key.is_some() || keys::are_of_ticket(arguments) {
                true => PACKET_HEADER + SEAL_BYTES as u64,
                false => PACKET_HEADER,
            },
        })
    }

    fn announce(
        &self,
        session: &SessionDescription,
        tickets: &[Ticket],
        arguments: &SendArguments,
        console: &Console,
    ) {
        let manifest = &session.manifest;
        let to: Vec<_> = self.addressing.to.iter().map(ToString::to_string).collect();
        let channels = tickets.first().map_or(1, |ticket| ticket.channels.count());
        let tickets: Vec<_> = tickets.iter().map(Ticket::to_string).collect();
        let files = manifest.files().count() as u64;
        let symbol_size = manifest.objects().first().map_or(0, |object| object.oti.symbol_size);
        console.result_event(&SendEvent::Session {
            ticket: tickets.first().cloned().unwrap_or_default(),
            tickets: tickets.clone(),
            to: to.clone(),
            interface: self.interface.clone(),
            tsi: session.ticket.tsi.0,
            manifest: session.manifest_hash.map(|hash| hash.to_string()),
            version: manifest.version(),
            files,
            directories: listing::directories(manifest),
            links: listing::links(manifest),
            bytes: manifest.content_length(),
            objects: manifest.objects().len() as u64,
            source_symbols: session.source_symbols,
            symbol_size,
            rate_bits_per_second: self.rate_bits_per_second,
            dry_run: arguments.dry_run,
        });
        let what = format!(
            "{}, to {}{} ({}) at {}{}",
            listing::counts(manifest),
            to.join(", "),
            match channels {
                1 => String::new(),
                count => format!(" and {} more", Count(u64::from(count) - 1, "group")),
            },
            self.interface,
            if self.is_automatic { "up to " } else { "" },
            self.rates(arguments),
        );
        plain::tell(session, arguments, console);
        if arguments.dry_run {
            console.result(format_args!("would send {what}"));
            listing::show(manifest, console, SendEvent::Entry);
            console.result(format_args!(
                "  {} of {symbol_size} bytes in {}; one pass takes {}",
                Count(session.source_symbols, "source symbol"),
                Count(manifest.objects().len() as u64, "object"),
                Time(self.pass(session.source_symbols, symbol_size)),
            ));
            if arguments.format() != SessionFormat::Fontana && arguments.tsi().is_none() {
                console.result(
                    "  the session number is random at every start; set it: --to GROUP:PORT/N",
                );
            }
        } else {
            let end = match (arguments.push, arguments.duration) {
                (Some(_), _) => "once",
                _ if arguments.reports.receivers.is_some() && arguments.watch.is_none() => {
                    "until the expected receivers are complete"
                }
                (None, Some(_)) => "for a while",
                (None, None) => "until Ctrl-C",
            };
            if let Some(lost) = listing::not_kept(manifest, arguments.format()) {
                console.note(lost);
            }
            console.say(format_args!("sending {what}, {end}; receive with"));
        }
        let mode = if arguments.watch.is_some() { "--watch " } else { "" };
        for ticket in tickets {
            console.result(format_args!("fontana recv {mode}'{ticket}'"));
        }
        if !arguments.dry_run {
            self.tell_faster(self.pass(session.source_symbols, symbol_size), console);
        }
    }

    /// The rate, or those of all interfaces in their order.
    fn rates(&self, arguments: &SendArguments) -> String {
        if arguments.rates().is_empty() {
            return ExactRate(self.rate_bits_per_second).to_string();
        }
        let rates = arguments.interfaces.iter().map(|name| arguments.rate_on(Some(name)));
        rates.map(|rate| ExactRate(rate).to_string()).collect::<Vec<_>>().join(" and ")
    }

    /// Says how to send faster than at the highest automatic rate, if one pass takes long.
    fn tell_faster(&self, pass: Duration, console: &Console) {
        let Some(speed) = self.speed.filter(|_| self.is_automatic && pass >= LONG_PASS) else {
            return;
        };
        // A tenth is left for others.
        let rate = speed / 10 * 9;
        if rate > self.rate_bits_per_second {
            console.note(format_args!(
                "it takes {} at {}; this interface has {}: --rate {}M",
                Time(pass),
                ExactRate(self.rate_bits_per_second),
                ExactRate(speed),
                rate / 1_000_000,
            ));
        }
    }

    /// The check of the rate of one session, if it is constant.
    fn rate_check(&self, arguments: &SendArguments, rate: u64) -> Option<Shortfall> {
        let is_layered = arguments.layered.is_some() || self.addressing.channels.count() > 1;
        let copies = self.addressing.to.len() as u64;
        (!is_layered && !self.is_automatic).then(|| Shortfall::new(rate, copies))
    }

    /// A ticket for the group, or for each host.
    fn tickets(&self, ticket: &Ticket) -> Vec<Ticket> {
        let for_one = |to: &std::net::SocketAddr| Ticket {
            group: to.ip(),
            port: to.port(),
            ..ticket.clone()
        };
        self.addressing.to.iter().map(for_one).collect()
    }

    /// Duration of one pass over the content, without control packets (under 1 %).
    fn pass(&self, source_symbols: u64, symbol_size: u16) -> Duration {
        let version = IpVersion::of(self.addressing.address().ip());
        let headers = self.packet_header + version.header_size() as u64;
        let packet = headers + u64::from(symbol_size);
        let copies = self.addressing.to.len() as u64;
        let bits = (source_symbols * packet * copies * 8) as f64;
        Duration::from_secs_f64(bits / self.rate_bits_per_second.max(1) as f64)
    }
}

/// Shows the events of a sender.
struct Watch<'a> {
    console: &'a Console,
    stop: &'a CancellationToken,
    interface: String,
    /// There are sessions on other interfaces.
    is_one_of_several: bool,
    source_symbols: u64,
    duration: Option<Duration>,
    copies: u64,
    objects: usize,
    bar: SendBar,
    /// `None` if the session has several rates: with layers, and with several versions.
    rate_check: Option<Shortfall>,
    gate: Gate,
    failures_shown: usize,
    /// An error said that no packet left this host.
    nothing_left: bool,
    time_is_up: bool,
    reports: ReportWatch<'a>,
}

impl Watch<'_> {
    fn handle(&mut self, event: &Event) {
        match event {
            Event::Failed(error) => {
                self.failures_shown += 1;
                let mut failure = Failure::from(&**error);
                let has_left =
                    !matches!(error.kind(), ErrorKind::NothingSent | ErrorKind::NoNeighbor);
                self.nothing_left |= !has_left;
                if self.failures_shown < self.objects && has_left {
                    failure.hint.push_str("\nthe other files go on");
                }
                self.console.failure(&failure);
            }
            Event::Progress(progress) => self.show(progress),
            Event::Report(status) => self.reports.show_report(status, self.console),
            Event::RateChanged { rate } => ReportWatch::show_rate(*rate, self.console),
            Event::Resting(rests) => {
                self.rate_check.iter_mut().for_each(|check| check.rest(*rests));
                ReportWatch::show_rest(*rests, self.console);
            }
            Event::Slow { receiver, rate } => {
                self.reports.note_slow(receiver, *rate, self.console);
            }
            Event::Crowd(crowd) => self.reports.show_crowd(crowd, self.console),
            _ => warnings::show(event, self.console),
        }
    }

    fn show(&mut self, progress: &SendProgress) {
        if self.gate.passes(progress.elapsed) {
            self.console.event(&SendEvent::progress(progress, &self.interface, self.copies));
        }
        // Files may have joined the session.
        self.source_symbols = progress.source_symbols;
        if let Some(check) = &mut self.rate_check {
            check.watch(progress, self.console);
        }
        self.bar.show(progress);
        if let Some(line) = self.bar.minute(progress) {
            self.console.progress(line);
        }
        if self.duration.is_some_and(|duration| progress.elapsed >= duration)
            && !self.stop.is_cancelled()
        {
            self.time_is_up = true;
            self.stop.cancel();
        }
    }

    fn conclude(self, summary: &SendReport) -> Outcome {
        let result = match summary.outcome {
            // The sender ended after `--for`.
            Outcome::Interrupted if self.time_is_up => Outcome::Complete,
            other => other,
        };
        let stats = &summary.stats;
        let passes = passes(stats, self.source_symbols);
        let sent = Sent::new(stats, summary.lost, self.copies);
        let (elapsed, packets) = (Time(summary.elapsed), Count(sent.packets, "packet"));
        let line = if self.nothing_left {
            format!("sent nothing in {elapsed}: none of {packets} left this host")
        } else {
            format!(
                "sent {passes:.2} passes in {elapsed}: {} on the wire in {packets} ({} source and \
                 {} repair symbols)",
                Bytes(sent.wire_bytes),
                sent.source_symbols,
                sent.repair_symbols,
            )
        };
        match self.is_one_of_several {
            true => self.console.say(format_args!("{}: {line}", self.interface)),
            false => self.console.say(line),
        }
        warnings::show_lost(summary.lost, self.console);
        if summary.scratch_bytes > 0 {
            let bytes = Bytes(summary.scratch_bytes);
            self.console.say(format_args!("solved blocks took {bytes} of the scratch file"));
        }
        let result = match &summary.crowd {
            Some(crowd) => result.worst(self.reports.conclude(crowd, self.console)),
            None => result,
        };
        self.console.result_event(&SendEvent::Summary {
            interface: self.interface,
            verdict: verdict(result).into(),
            code: exit::code(result),
            seconds: seconds(summary.elapsed),
            passes,
            solved_bytes: summary.solved_bytes,
            scratch_bytes: summary.scratch_bytes,
            sent,
        });
        result
    }
}
