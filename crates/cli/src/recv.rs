//! `fontana recv`.

use crate::address;
use crate::args::ReceiveArguments;
use crate::console::Console;
use crate::events::{self, Content, ReceiveEvent as Line};
use crate::failure::Failure;
use crate::hook::{Described, Hook};
use crate::progress::{OncePerSecond, ReceiveBar, received};
use crate::send::listing;
use crate::signal::stop_on_signals;
use crate::units::{Bytes, Count};
use choose::Chooser;
use explain::Circumstances;
use fontana::net::{InterfaceSelector, Interfaces};
use fontana::wire::{ChannelGroups, MAX_CHANNELS, Manifest, Printable, Ticket};
use fontana::{
    Acceptance, DecodePolicy, MetadataMode, Outcome, Profile, Reach, ReceiveEvent, ReceiveOptions,
    ReceiveSession, ReceiveSummary, SimulatedLoss, Stop, Versions,
};
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;

mod choose;
mod destination;
mod explain;
mod follow;

pub(crate) fn run(
    arguments: &ReceiveArguments,
    console: &Console,
    stop: &Stop,
) -> Result<Outcome, Failure> {
    let options = options(arguments)?;
    if arguments.watch {
        return follow::run(arguments, options, console, stop);
    }
    let asks = options.acceptance == Acceptance::Ask && !arguments.list;
    if asks && (console.is_json() || !io::stdin().is_terminal() || !io::stderr().is_terminal()) {
        let message = "which session? There is no terminal to ask on";
        let hint = "give the ticket that the sender printed: fontana recv 'fontana://...'\n\
                       or take the first session that is heard: fontana recv -y";
        return Err(Failure::new(Outcome::Usage, message, hint));
    }
    let address = options.reach.address();
    let session = destination::open(arguments, options, console)?;
    stop_on_signals(stop)?;
    let place = begin(&session, arguments, address, console);
    let mut watch = Watch {
        console,
        stop,
        chooser: asks.then(|| Chooser::new(session.handle())).transpose()?,
        bar: None,
        gate: OncePerSecond::default(),
        files: 0,
        offers_told: 0,
        lists: arguments.list,
        told: BTreeSet::new(),
        poisoned: false,
        described: Described::default(),
        hook: Hook::new(&arguments.exec, &arguments.output),
    };
    let summary = session.run(stop, &mut |event| watch.observe(&event));
    if let Some(bar) = &watch.bar {
        bar.clear();
    }
    let circumstances = Circumstances::new(place, address, arguments, watch.offers_told > 0);
    let summary = summary?;
    if arguments.list && !watch.lists {
        return Ok(Outcome::Complete);
    }
    Ok(watch.conclude(&summary, &circumstances))
}

/// Says where it listens. Returns that place, for people.
fn begin(
    session: &ReceiveSession,
    arguments: &ReceiveArguments,
    address: SocketAddr,
    console: &Console,
) -> String {
    let place = format!("{address} ({})", session.interface());
    console.event(&Line::Session {
        group: address.to_string(),
        interface: session.interface().to_owned(),
        directory: Printable(
            arguments.to.as_ref().unwrap_or(&arguments.output).as_os_str().as_encoded_bytes(),
        )
        .to_string(),
        ticket: arguments.ticket.as_ref().map(Ticket::to_string),
    });
    if let Some(shortfall) = session.buffer_shortfall() {
        let (got, asked) = (Bytes(shortfall.got as u64), Bytes(shortfall.asked as u64));
        let message = format!("the receive buffer has {got} of {asked}: fast senders overrun it");
        console.warning(&message, &format!("as root: {}", shortfall.remedy));
    }
    console.note(format_args!("listening on {place}"));
    place
}

/// What the arguments mean.
fn options(arguments: &ReceiveArguments) -> Result<ReceiveOptions, Failure> {
    let directory = match (&arguments.to, &arguments.staging) {
        (None, _) => arguments.output.clone(),
        (Some(_), Some(staging)) => staging.clone(),
        (Some(_), None) => std::env::temp_dir(),
    };
    let mut options = match &arguments.ticket {
        Some(ticket) => ReceiveOptions::from_ticket(ticket, directory),
        None => ReceiveOptions {
            reach: Reach {
                // As many as whoever sends says, on the groups after this one.
                channels: ChannelGroups::Consecutive(MAX_CHANNELS),
                ..Reach::to(address::parse(&arguments.group)?)
            },
            ..ReceiveOptions::new(directory)
        },
    };
    let publisher = &mut options.expectation.publisher;
    match (&publisher, arguments.key) {
        (Some(named), Some(key)) if *named != key => {
            let message = format!("the ticket's key is {named}, and --key is another one");
            return Err(Failure::new(Outcome::Usage, message, "leave one of them out"));
        }
        _ => *publisher = publisher.or(arguments.key),
    }
    let named = arguments.interface.interface.clone();
    options.reach.interface = named.or_else(|| own_interface(arguments.ticket.as_ref()?));
    // There is nothing to choose by: plain FLUTE and FCAST sessions say too little about
    // themselves.
    let takes_first = arguments.ticket.is_some()
        || arguments.key.is_some()
        || arguments.yes
        || arguments.metadata() != MetadataMode::Manifest
        || arguments.watch;
    let takes_first = takes_first && !arguments.list;
    let to_size = |size| usize::try_from(size).unwrap_or(usize::MAX);
    Ok(ReceiveOptions {
        acceptance: if takes_first { Acceptance::Automatic } else { Acceptance::Ask },
        metadata: arguments.metadata(),
        overwrite: arguments.overwrite,
        only: arguments.only.clone(),
        skip_existing: arguments.skip_existing,
        policy: match arguments.patient {
            Some(margin) => DecodePolicy::Patient { margin },
            None => Profile::from(arguments.profile).policy(),
        },
        memory: to_size(arguments.memory.memory),
        receive_buffer: to_size(arguments.receive_buffer),
        max_bytes: arguments.max_size,
        window: arguments.window,
        max_channels: arguments.max_layers.unwrap_or(options.max_channels),
        max_rate_bytes_per_second: arguments.max_rate.map(|rate| rate / 8),
        timeout: arguments.timeout,
        give_up_after_silence: match arguments.silence {
            Some(silence) => (!silence.is_zero()).then_some(silence),
            None => options.give_up_after_silence,
        },
        versions: if arguments.any_version { Versions::Any } else { Versions::default() },
        simulated_loss: arguments
            .simulate_loss
            .map(|probability| SimulatedLoss { probability, seed: arguments.seed }),
        ..options
    })
}

/// The interface that a sender on this same host uses. Without it `send -i lo` would print a
/// command that does not work here.
fn own_interface(ticket: &Ticket) -> Option<InterfaceSelector> {
    let interfaces = Interfaces::list().ok()?;
    let is_ours = |source| interfaces.iter().flat_map(|i| &i.addresses).any(|a| a.ip == source);
    let source = ticket.sources.iter().copied().find(|&source| is_ours(source))?;
    Some(InterfaceSelector::Address(source))
}

/// Sessions on offer that are told of. Each needs a forged manifest only, so there is an end.
const MAX_OFFERS: usize = 256;

/// Watches a receiver at work.
struct Watch<'a> {
    console: &'a Console,
    stop: &'a Stop,
    /// Present until a session was chosen.
    chooser: Option<Chooser>,
    bar: Option<ReceiveBar>,
    gate: OncePerSecond,
    files: u64,
    offers_told: usize,
    /// The names in the first session are wanted, and nothing else.
    lists: bool,
    /// Errors that were told: the same one often ends many objects.
    told: BTreeSet<String>,
    poisoned: bool,
    /// What is being received.
    described: Described,
    /// What is run when it is complete.
    hook: Option<Hook<'a>>,
}

impl Watch<'_> {
    fn observe(&mut self, event: &ReceiveEvent<'_>) {
        let console = self.console;
        match event {
            ReceiveEvent::Offered(offer) => {
                self.offers_told += 1;
                if self.offers_told > MAX_OFFERS {
                    return;
                }
                console.event(&Line::Offered {
                    source: offer.session.source.to_string(),
                    tsi: offer.session.tsi.0,
                    content: Content::offered(offer),
                });
                if std::mem::take(&mut self.lists) {
                    console.result(format_args!("{}", Printable(offer.manifest.label())));
                    listing::show(&offer.manifest, console, Line::Entry);
                    self.stop.set();
                }
                if let Some(chooser) = &mut self.chooser {
                    chooser.offer(offer, console);
                }
            }
            ReceiveEvent::Rejected { session, reason } => console.event(&Line::Rejected {
                source: session.source.to_string(),
                tsi: session.tsi.0,
                reason: events::rejection(*reason).into(),
            }),
            ReceiveEvent::Accepted { session, manifest, hash, verified } => {
                console.event(&Line::Accepted {
                    source: session.source.to_string(),
                    tsi: session.tsi.0,
                    verified: events::verified(*verified).into(),
                    content: Content::new(manifest, hash.to_string()),
                });
                self.described = Described::new(*session, manifest);
                self.begin(manifest, session.source);
            }
            ReceiveEvent::Selected(part) => {
                let (files, bytes, objects) = (part.files, part.bytes, part.objects);
                console.event(&Line::Selected { files, bytes, objects });
                console.note(format_args!(
                    "of these {}, {}, in {}",
                    Count(files, "file"),
                    Bytes(bytes),
                    Count(objects, "object"),
                ));
                self.files = files;
                self.described.select(files);
            }
            ReceiveEvent::Compared { bytes, of } => {
                let (bytes, of_bytes) = (*bytes, *of);
                console.event(&Line::Compared { bytes, of_bytes });
                let (bytes, of) = (Bytes(bytes), Bytes(of_bytes));
                console.note(format_args!("compared {bytes} of {of} that may be here already"));
            }
            ReceiveEvent::StreamOffered { session, index } => {
                self.offers_told += 1;
                if self.offers_told > MAX_OFFERS {
                    return;
                }
                console.event(&Line::stream_offered(*session, index));
                if std::mem::take(&mut self.lists) {
                    // A stream has no list of names.
                    console.result(format_args!("{}  a stream", Printable(index.name.as_bytes())));
                    self.stop.set();
                }
                if let Some(chooser) = &mut self.chooser {
                    chooser.offer_stream(*session, index, console);
                }
            }
            ReceiveEvent::StreamAccepted { session, index, key, verified } => {
                console.event(&Line::stream_accepted(*session, index, key, *verified));
                let name = Printable(index.name.as_bytes());
                console.note(format_args!("receiving the stream {name} from {}", session.source));
                self.chooser = None;
                self.files = 1;
                self.bar = Some(ReceiveBar::new(console));
            }
            ReceiveEvent::Resumed { symbols, source_symbols } => {
                let (symbols, source_symbols) = (*symbols, *source_symbols);
                console.event(&Line::Resumed { symbols, source_symbols });
                console.note(format_args!(
                    "going on with {symbols} of {} that were here already",
                    Count(source_symbols, "symbol"),
                ));
            }
            ReceiveEvent::CarouselFound { session } => {
                let (source, tsi) = (session.source.to_string(), session.tsi.0);
                console.note(format_args!("receiving the objects that {source} sends"));
                console.event(&Line::CarouselFound { source, tsi });
                self.bar.get_or_insert_with(|| ReceiveBar::new(console));
            }
            ReceiveEvent::FileFound { toi, name, bytes } => {
                let name = Printable(name).to_string();
                console.note(format_args!("receiving {name}, {}", Bytes(*bytes)));
                console.event(&Line::FileFound {
                    object: events::object(*toi),
                    name,
                    bytes: *bytes,
                });
                self.files += 1;
                self.bar.get_or_insert_with(|| ReceiveBar::new(console));
            }
            ReceiveEvent::Poisoned { toi, times } => {
                console.event(&Line::Poisoned { object: events::object(*toi), times: *times });
                if !std::mem::replace(&mut self.poisoned, true) {
                    console.note(
                        "a block was wrong and is received anew: packets are forged or damaged",
                    );
                }
            }
            ReceiveEvent::Silence { duration, ever_since_start } => {
                let (seconds, ever_since_start) = (duration.as_secs_f64(), *ever_since_start);
                console.event(&Line::Silence { seconds, ever_since_start });
                console.note(format_args!("silent for {seconds} s; joined anew"));
            }
            ReceiveEvent::Level { channels, received_bytes_per_second } => {
                console.event(&Line::Level {
                    channels: *channels,
                    received_bits_per_second: received_bytes_per_second * 8,
                });
            }
            ReceiveEvent::ChannelRefused { channel, error } => {
                let failure = Failure::from(*error);
                let message = format!("channel {channel} cannot be joined: {}", failure.message);
                console.warning(&message, "it goes on more slowly without");
                console.event(&Line::ChannelRefused { channel: *channel, reason: failure.message });
            }
            ReceiveEvent::HeardEnough => {
                console.event(&Line::HeardEnough {});
            }
            ReceiveEvent::ObjectDone(report) => console.event(&Line::object_done(report)),
            ReceiveEvent::ObjectFailed { toi, names, error } => {
                let failure = explain::object(names, *error);
                console.event(&Line::object_failed(*toi, names, &failure));
                self.tell(&failure);
            }
            ReceiveEvent::Progress(progress) => {
                if self.gate.passes(progress.elapsed) {
                    console.event(&Line::progress(progress));
                }
                if let Some(bar) = &mut self.bar {
                    bar.show(progress);
                }
            }
        }
        if self.chooser.as_mut().is_some_and(|chooser| chooser.poll(console).is_break()) {
            self.stop.set();
        }
    }

    fn begin(&mut self, manifest: &Manifest, source: std::net::IpAddr) {
        self.chooser = None;
        self.files = manifest.files().count() as u64;
        let label = Printable(manifest.label());
        let (files, bytes) = (Count(self.files, "file"), Bytes(manifest.content_length()));
        self.console.note(format_args!("receiving {label} ({files}, {bytes}) from {source}"));
        self.bar = Some(ReceiveBar::new(self.console));
    }

    /// Tells of a failure once.
    fn tell(&mut self, failure: &Failure) {
        if self.told.insert(failure.message.clone()) {
            self.console.failure(failure);
        }
    }

    fn conclude(&mut self, summary: &ReceiveSummary, circumstances: &Circumstances) -> Outcome {
        // A consumer may have had enough: that is no error.
        let hung_up = summary.delivery.is_some_and(|delivery| delivery.closed);
        for error in &summary.failures {
            self.tell(&Failure::from(&**error));
        }
        if summary.outcome == Outcome::Complete {
            self.console.note(received(&summary.progress, summary.bytes, self.files));
        } else if self.told.is_empty() && !self.console.is_closed() && !hung_up {
            self.tell(&circumstances.explain(summary));
        }
        if summary.progress.kernel_drops > 0 {
            let drops = Count(summary.progress.kernel_drops, "packet");
            self.console.note(format_args!("this host was too slow: its kernel dropped {drops}"));
        }
        let outcome = summary.outcome.worst(self.run_hook(summary));
        let mut line = Line::summary(summary);
        line.set_verdict(outcome);
        self.console.event(&line);
        outcome
    }

    /// Runs the hook, if there is one and everything is complete. Whether it succeeded.
    fn run_hook(&mut self, summary: &ReceiveSummary) -> Outcome {
        let Some(hook) = self.hook.as_ref().filter(|_| summary.outcome == Outcome::Complete) else {
            return Outcome::Complete;
        };
        match hook.run(summary, &self.described) {
            Ok(()) => Outcome::Complete,
            Err(failure) => {
                self.console.failure(&failure);
                failure.outcome
            }
        }
    }
}
