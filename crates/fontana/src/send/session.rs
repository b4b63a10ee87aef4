//! A session of files that is ready to be sent.

use super::answers::ReturnPath;
use super::carousel::{Carousel, Geometry, NextInstance, send_objects};
use super::checks::{check, check_head_room};
use super::control::{Announced, ControlObjects, EmittedManifest, control_objects};
use super::digests::{draw_signer, records_with};
use super::driver::{self, Transmission};
use super::egress::Egress;
use super::number::HeldNumber;
use super::options::SendOptions;
use super::order::Layout;
use super::rate::rate_config;
use super::repair::repair_config;
use super::reports::{Demands, Reports, reachable};
use super::runner::EncoderPool;
use super::sealing::{Sealing, complete_keys};
use crate::cancellation::CancellationToken;
use crate::content::{Content, ContentOptions, Undescribed};
use crate::error::{Error, SetupError};
use crate::event::SendEvent;
use crate::format::{FcastFormat, FluteFormat, FontanaFormat, Format};
use crate::geometry::FTI_BYTES;
use crate::layers::{Layering, LayeringScheme};
use crate::memory::SenderMemory;
use crate::outcome::Outcome;
use crate::report::SendReport;
use crossbeam_channel::Receiver;
use fontana_net::CollectorSocket;
use fontana_proto as proto;
use fontana_proto::report::RateConfig;
use fontana_proto::{ChannelClock, DigestSigner, EarlierReceivers, Instant, SenderConfig};
use fontana_store::{Descriptors, ScratchFile, SolvedStore};
use fontana_wire::{
    ChannelGroups, CongestionControl, ContentEncoding, Hash, Manifest, Ticket, Tsi,
};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A session that is ready to be sent: files are examined and hashed, the socket is open.
pub struct PreparedSender {
    description: Arc<SessionDescription>,
    token: CancellationToken,
    carousel: Option<Carousel>,
    transmission: Transmission,
    /// Where packets come from and go to.
    source: IpAddr,
    to: Vec<SocketAddr>,
    /// The session's number, if it is held already.
    number: Option<HeldNumber>,
}

/// The content of a session, and its ticket.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionDescription {
    /// The ticket for receivers.
    pub ticket: Ticket,
    /// The content.
    pub manifest: Manifest,
    /// Hash of the manifest; `None` for plain FLUTE and FCAST, which have none.
    pub manifest_hash: Option<Hash>,
    /// Source symbols of the whole content; one pass sends this many.
    pub source_symbols: u64,
    /// The errors of files and directories that are not in the content.
    pub left_out: Vec<Arc<Error>>,
    /// Files and directories of this library, as those of receivers, that are not in the content.
    pub skipped: u64,
    /// What the files beside it do not include, because the format cannot describe it.
    pub undescribed: Undescribed,
}

impl SessionDescription {
    /// The ticket without the manifest: it stays valid for all versions of a publisher.
    pub fn lasting_ticket(&self) -> Ticket {
        Ticket { manifest: None, ..self.ticket.clone() }
    }
}

impl PreparedSender {
    /// Examines and hashes the files, opens the socket, and plans the session. `token` ends it.
    pub(crate) fn prepare(options: SendOptions, token: CancellationToken) -> Result<Self, Error> {
        let content = |options: &ContentOptions<'_>, format: &Format| match format {
            Format::Fcast(fcast) => {
                Content::compound(options, fcast.slice_bytes, 1, &Descriptors::default())
            }
            Format::Fontana(FontanaFormat { manifest: Some(manifest), .. }) => {
                Content::of_manifest(options, manifest)
            }
            Format::Fontana(_) | Format::Flute(_) => Content::examine(options),
        };
        let mut prepared = Self::prepare_content(options, token, content)?;
        // A process that is confined before it sends could not hold it then. The versions of a
        // publisher hold it one after the other.
        let tsi = prepared.description.ticket.tsi;
        prepared.number = Some(HeldNumber::new(tsi, prepared.source, &prepared.to));
        Ok(prepared)
    }

    /// Opens the socket and plans a session of the content that `examine` makes.
    pub(crate) fn prepare_content(
        mut options: SendOptions,
        token: CancellationToken,
        examine: impl FnOnce(&ContentOptions<'_>, &Format) -> Result<Content, Error>,
    ) -> Result<Self, Error> {
        take_symbol_size(&mut options);
        check(&options)?;
        let egress = Egress::of(&options.addressing)?;
        let is_plain = options.format.fontana().is_none();
        let fti_in_packets = matches!(options.format, Format::Fcast(_));
        let extension_bytes = if fti_in_packets { FTI_BYTES } else { 0 };
        let symbol_size = egress.symbol_size(options.symbol_size, options.code, extension_bytes)?;
        let seed = options.seed.map_or_else(crate::system::random_u64, Ok)?;
        let rate_bytes_per_second =
            options.rate.as_bytes_per_second() / options.addressing.copies().max(1) as u64;
        let sealing = Sealing::draw(options.seal_mode(), options.certificate())?;
        let extension_bytes = extension_bytes + sealing.bytes();
        let packet_bytes = egress.packet_bytes(symbol_size, options.code, extension_bytes);
        let congestion_control =
            congestion_control(&mut options, rate_bytes_per_second, packet_bytes)?;
        let digests = draw_signer(&options, sealing.instance, symbol_size)?;
        let records = records_with(digests.as_ref(), options.records());
        check_head_room(&congestion_control, records.size(), symbol_size)?;
        let channels = clock(&congestion_control, rate_bytes_per_second, packet_bytes, seed)?;
        let socket = egress.socket(&options.addressing)?;
        socket.check_size(egress.payload_bytes(symbol_size, options.code, extension_bytes))?;
        let file = crate::system::scratch_file(options.scratch).map(Arc::new);
        let content_options = content_options(&options, symbol_size, file.as_ref());
        let mut content = examine(&content_options, &options.format)?;
        let instance = sealing.instance;
        let announced = Announced { instance, congestion_control: &congestion_control, records };
        let manifest = options.format.fontana().map(|_| EmittedManifest::of(&content.manifest));
        let manifest_hash = manifest.as_ref().map(|manifest| manifest.hash);
        let tsi = options.tsi.unwrap_or_else(|| draw_tsi(manifest_hash.as_ref(), seed));
        let secret = complete_keys(&mut options.format, manifest_hash.as_ref());
        let control =
            control_objects(&options, announced, &content, manifest.as_ref(), symbol_size)?;
        let ControlObjects { objects: control, renewal } = control;
        let local = socket.local_address().ip();
        let ticket = Ticket { secret, ..ticket(&options, local, tsi, manifest_hash) };
        let channel_count = congestion_control.channel_count();
        let reports = Reports::prepare(
            &options,
            instance,
            &ticket,
            manifest_hash,
            reachable(socket.local_address(), &options.addressing),
            symbol_size,
            demands(&options, &content, channel_count, rate_bytes_per_second, packet_bytes)?,
        )?;
        if reports.as_ref().is_some_and(Reports::repairs_files) {
            options.mode = proto::SendMode::RepairOnDemand;
        }
        let ticket = Ticket { ask: reports.as_ref().map(Reports::port), ..ticket };
        let shares = SenderMemory::of(options.memory, options.workers);
        let (layout, solved) = plan(&options, &content, symbol_size, channel_count, &shares, file)?;
        let sender = proto::Sender::new(SenderConfig {
            tsi,
            objects: send_objects(&content, options.source_pass).collect(),
            first: content.first.clone(),
            control,
            mode: options.mode,
            schedule: layout.schedule,
            rate_bytes_per_second: reports
                .as_ref()
                .and_then(Reports::start_rate)
                .unwrap_or(rate_bytes_per_second),
            packet_overhead: egress.version.header_size() as u32,
            peak_window: options.peak_window,
            round_symbols: layout.round_symbols,
            opening_permille: layout.opening_permille,
            pass_start: if options.source_pass { options.pass_start } else { seed as u32 },
            channels,
            sequence_in_cci: !is_plain,
            omit_padding: matches!(options.format, Format::Flute(_)),
            fti_in_packets,
            seal: sealing.session,
            seed,
        });
        let makes_digests = digests.is_some();
        let (sender, answers) = with_return_path(sender, digests, reports)?;
        let pool = EncoderPool::new(Arc::clone(&solved));
        let encoders = pool.encoders(&content).into_iter().collect();
        let (carousel, instances) = carousel(&options, symbol_size, &content, pool);
        let transmission = Transmission {
            socket,
            sealer: sealing.sealer(options.group_seal()),
            sender,
            makes_digests,
            source_symbols: content.source_symbols(),
            encoders,
            instances,
            renewal,
            answers,
            repairs_on_demand: options.mode == proto::SendMode::RepairOnDemand,
            workers: options.workers.max(1),
            worker_bytes: shares.worker_bytes,
            spare_bytes: layout.round_bytes,
            solved,
            solving_window: layout.solving_window,
            _spooled: std::mem::take(&mut content.spooled),
        };
        let description = describe(ticket, manifest_hash, transmission.source_symbols, content);
        let to = options.addressing.to;
        Ok(Self { description, token, carousel, transmission, source: local, to, number: None })
    }

    /// Follows the receivers of the version before from its rate on.
    pub(crate) fn follow_from(&mut self, earlier: EarlierReceivers) {
        self.transmission.sender.follow_from(Instant::ZERO, earlier);
    }

    /// The socket that receivers report to, for the next version.
    pub(crate) fn collector_socket(&self) -> Option<Arc<CollectorSocket>> {
        let path = self.transmission.answers.as_ref()?;
        Some(Arc::clone(&path.socket))
    }

    /// The content of the session, and its ticket.
    pub fn description(&self) -> &SessionDescription {
        &self.description
    }

    pub(crate) fn shared_description(&self) -> &Arc<SessionDescription> {
        &self.description
    }

    /// The handle for further files, if the session takes any.
    pub(crate) fn take_carousel(&mut self) -> Option<Carousel> {
        self.carousel.take()
    }

    pub(crate) fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// Sends on this thread until everything has been sent, nothing is left to send, or `token` is
    /// cancelled.
    pub(crate) fn run(
        self,
        token: &CancellationToken,
        emit: &mut dyn FnMut(SendEvent),
    ) -> Result<SendReport, Error> {
        let tsi = self.description.ticket.tsi;
        let new_number = || HeldNumber::new(tsi, self.source, &self.to);
        let number = self.number.unwrap_or_else(new_number);
        if number.is_in_use {
            emit(SendEvent::NumberInUse { tsi });
        }
        let mut report = driver::run(self.transmission, token, emit)?;
        let left_out = self.description.left_out.iter().map(|error| error.outcome());
        report.outcome = left_out.fold(report.outcome, Outcome::worst);
        Ok(report)
    }
}

fn describe(
    ticket: Ticket,
    manifest_hash: Option<Hash>,
    source_symbols: u64,
    content: Content,
) -> Arc<SessionDescription> {
    let Content { manifest, left_out, skipped, undescribed, .. } = content;
    Arc::new(SessionDescription {
        ticket,
        manifest,
        manifest_hash,
        source_symbols,
        left_out,
        skipped,
        undescribed,
    })
}

/// The sender, with what it was asked for, and where receivers report.
fn with_return_path(
    mut sender: proto::Sender,
    digests: Option<DigestSigner>,
    reports: Option<Reports>,
) -> Result<(proto::Sender, Option<ReturnPath>), Error> {
    if let Some(signer) = digests {
        sender = sender.with_digests(signer).map_err(SetupError::from)?;
    }
    Ok(match reports {
        Some(Reports { path, config }) => {
            (sender.with_collection(config, Instant::ZERO), Some(path))
        }
        None => (sender, None),
    })
}

/// A session of known content has the symbol size of its manifest.
fn take_symbol_size(options: &mut SendOptions) {
    if let Some(manifest) = options.manifest() {
        // All objects have the same symbol size; a manifest of empty files has no object.
        let object = manifest.objects().first();
        options.symbol_size = object.map(|object| object.oti.symbol_size);
    }
}

/// What takes further files of a growing session, and what it passes on.
fn carousel(
    options: &SendOptions,
    symbol_size: u16,
    content: &Content,
    pool: EncoderPool,
) -> (Option<Carousel>, Receiver<NextInstance>) {
    match &options.format {
        Format::Fcast(FcastFormat { slice_bytes, growing: true }) => {
            let geometry = Geometry { code: options.code, symbol_size };
            let (carousel, instances) =
                Carousel::new(options, geometry, *slice_bytes, content, pool);
            (Some(carousel), instances)
        }
        _ => (None, crossbeam_channel::never()),
    }
}

/// Times that content is sent in a second, at most, while no receiver has reported: one that comes
/// later has it as soon as it can notice.
const BLIND_PASSES_PER_SECOND: u64 = 20;

/// What receivers may demand.
fn demands(
    options: &SendOptions,
    content: &Content,
    channels: u8,
    rate_bytes_per_second: u64,
    packet_bytes: u16,
) -> Result<Demands, Error> {
    let packets_per_second = rate_bytes_per_second as f64 / f64::from(packet_bytes);
    let repair = repair_config(options, content, channels, packets_per_second)?;
    let reports = options.format.fontana().and_then(|format| format.reports.as_ref());
    let Some(reports) = reports else { return Ok(Demands { repair, rate: None }) };
    if reports.rate.is_some() && (options.layering().is_some() || channels > 1) {
        return Err(SetupError::RateFollowing { needs: "one channel" }.into());
    }
    let (addressing, is_sealed) = (&options.addressing, options.group_seal().is_some());
    let mut rate =
        rate_config(reports, addressing, is_sealed, rate_bytes_per_second, packet_bytes)?;
    if let Some(RateConfig { blind: Some(blind), start, .. }) = &mut rate {
        let pass = content.source_symbols().saturating_mul(packet_bytes.into());
        *blind = pass.saturating_mul(BLIND_PASSES_PER_SECOND).max(*start).min(*blind);
    }
    Ok(Demands { repair, rate })
}

/// The number of a session, if the user gives none.
fn draw_tsi(manifest_hash: Option<&Hash>, seed: u64) -> Tsi {
    match manifest_hash {
        // 0 is not a TSI in ALC (RFC 5775, section 2.1).
        None => Tsi(u64::from(seed as u32).max(1)),
        Some(hash) => Tsi::of_manifest(hash),
    }
}

/// The order of symbols, and the store of solved blocks.
fn plan(
    options: &SendOptions,
    content: &Content,
    symbol_size: u16,
    channels: u8,
    shares: &SenderMemory,
    scratch: Option<Arc<ScratchFile>>,
) -> Result<(Layout, Arc<SolvedStore>), Error> {
    let scratch_bytes = scratch.as_ref().map_or(0, |scratch| scratch.room());
    let layout = Layout::of(options, content, symbol_size, channels, shares, scratch_bytes)?;
    let scratch = scratch.filter(|_| layout.needs_scratch);
    let solved = SolvedStore::with_scratch(layout.solved_bytes, scratch);
    Ok((layout, solved))
}

fn content_options<'a>(
    options: &'a SendOptions,
    symbol_size: u16,
    copies: Option<&'a Arc<ScratchFile>>,
) -> ContentOptions<'a> {
    ContentOptions {
        files: &options.files,
        in_memory: &options.in_memory,
        parts: &options.parts,
        name: options.name.as_deref(),
        filter: &options.filter,
        code: options.code,
        symbol_size,
        block_symbols: options.max_block_symbols(),
        version: options.version(),
        content_encoding: match options.format {
            Format::Flute(FluteFormat { content_encoding, .. }) => content_encoding,
            _ => ContentEncoding::Null,
        },
        plain: options.format.fontana().is_none(),
        signed: options.will_be_signed(),
        // Plain FLUTE and FCAST have no hashes of blocks.
        verifies: options.format.fontana().is_some(),
        copies,
        workers: options.workers,
    }
}

/// The clock of a session with layers. A session without layers sends at its rate limit.
fn clock(
    congestion_control: &CongestionControl,
    rate_bytes_per_second: u64,
    packet_bytes: u16,
    seed: u64,
) -> Result<Option<ChannelClock>, Error> {
    if *congestion_control == CongestionControl::FixedRate {
        return Ok(None);
    }
    let start = Instant::ZERO;
    let clock =
        ChannelClock::new(congestion_control, rate_bytes_per_second, packet_bytes, start, seed)?;
    Ok(Some(clock))
}

/// The ticket of a session that is sent from `local`.
fn ticket(options: &SendOptions, local: IpAddr, tsi: Tsi, manifest: Option<Hash>) -> Ticket {
    let source = ticket_source(options, local);
    Ticket {
        near: source.is_none().then_some(local).filter(|local| !local.is_unspecified()),
        sources: source.into_iter().collect(),
        key: options.publisher(),
        manifest,
        format: options.format.foreign(),
        channels: options.addressing.channels.clone(),
        ..Ticket::new(options.addressing.ticket_address(), tsi)
    }
}

/// The source that the ticket names: none with mirrors, so that one ticket is valid for all of
/// them. A source-specific group has to name one (RFC 4607). On the loopback interface the source
/// determines where receivers listen.
fn ticket_source(options: &SendOptions, source: IpAddr) -> Option<IpAddr> {
    let group = options.addressing.ticket_address().ip();
    let named = !options.mirrored || source.is_loopback() || fontana_net::is_source_specific(group);
    (named && !source.is_unspecified()).then_some(source)
}

/// The congestion control of the session head. If the number of channels follows from the rate, so
/// do the groups, unless they were given.
fn congestion_control(
    options: &mut SendOptions,
    rate_bytes_per_second: u64,
    packet_bytes: u16,
) -> Result<CongestionControl, Error> {
    let groups = options.addressing.channels.count();
    let layering = match options.layering() {
        None if groups == 1 => return Ok(CongestionControl::FixedRate),
        None => Layering::new(LayeringScheme::Fixed),
        Some(layering) => layering.clone(),
    };
    if options.format.fontana().is_none() {
        return Err(SetupError::OneChannelOnly("a plain FLUTE or FCAST session").into());
    }
    let control = layering.congestion_control(groups, rate_bytes_per_second, packet_bytes)?;
    let channels = control.channel_count();
    match &mut options.addressing.channels {
        ChannelGroups::Consecutive(count) if *count == 1 => *count = channels,
        _ if groups == channels => {}
        _ => return Err(SetupError::Groups { groups, channels }.into()),
    }
    Ok(control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addressing::Addressing;

    #[test]
    fn a_ticket_for_mirrors_names_a_source_only_where_it_has_to() {
        let named = |group: &str, mirrored, source: &str| {
            let mut options = SendOptions::new(Vec::new());
            options.addressing = Addressing::to(group.parse().unwrap());
            options.mirrored = mirrored;
            ticket_source(&options, source.parse().unwrap()).is_some()
        };
        for (group, source, alone, mirrored) in [
            ("239.255.77.1:7701", "10.0.0.7", true, false),
            ("232.1.2.3:7701", "10.0.0.7", true, true),
            ("[ff15::1]:7701", "fd00::7", true, false),
            ("[ff35::1]:7701", "fd00::7", true, true),
            ("239.255.77.1:7701", "127.0.0.1", true, true),
            ("10.0.0.9:7701", "10.0.0.7", true, false),
            ("239.255.77.1:7701", "0.0.0.0", false, false),
        ] {
            assert_eq!(named(group, false, source), alone, "{group} from {source}");
            assert_eq!(named(group, true, source), mirrored, "{group} from {source}, mirrored");
        }
    }
}
