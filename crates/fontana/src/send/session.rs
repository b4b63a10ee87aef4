//! A session of files that is ready to be sent.

use super::checks::{check, check_head_room};
use super::control::control_objects;
use super::driver::{self, Transmission};
use super::egress::{Egress, FTI_BYTES};
use super::options::SendOptions;
use super::order::Layout;
use super::progress::{SendProgress, SendSummary};
use crate::content::{Content, ContentOptions};
use crate::error::{Error, SetupError};
use crate::layers::{Layering, LayeringScheme};
use crate::memory::SenderMemory;
use crate::stop::Stop;
use fontana_proto::{ChannelClock, Instant, MetadataMode, SendObject, Sender, SenderConfig};
use fontana_store::{Allowance, ObjectEncoder};
use fontana_wire::{ChannelGroups, CongestionControl, Hash, Manifest, SecretKey, Ticket, Toi, Tsi};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// A session that is ready to be sent: files examined and hashed, socket open.
pub struct SendSession {
    ticket: Ticket,
    content: Content,
    /// `None` for plain FLUTE and FCAST.
    manifest_hash: Option<Hash>,
    transmission: Transmission,
}

impl SendSession {
    /// Examines and hashes the files, opens the socket, and lays out the session.
    ///
    /// # Errors
    /// [`Error`]; nothing has been sent then.
    pub fn prepare(mut options: SendOptions) -> Result<Self, Error> {
        if let Some(manifest) = &options.manifest {
            options.manifest_version = manifest.version();
            // All its objects have symbols of one size; a manifest of empty files has none.
            let object = manifest.objects().first();
            options.symbol_size = object.map(|object| object.oti.symbol_size);
        }
        check(&options)?;
        let egress = Egress::of(&options.reach)?;
        let is_plain = options.metadata != MetadataMode::Manifest;
        let fti_in_packets = options.metadata == MetadataMode::Fcast;
        let extension_bytes = if fti_in_packets { FTI_BYTES } else { 0 };
        let symbol_size = egress.symbol_size(options.symbol_size, options.code, extension_bytes)?;
        let seed = options.seed.map_or_else(crate::system::random_u64, Ok)?;
        let rate_bytes_per_second =
            options.rate_bytes_per_second / options.reach.copies().max(1) as u64;
        let packet_bytes = egress.packet_bytes(symbol_size, options.code);
        let congestion_control =
            congestion_control(&mut options, rate_bytes_per_second, packet_bytes)?;
        check_head_room(&congestion_control, symbol_size)?;
        let channels = clock(&congestion_control, rate_bytes_per_second, packet_bytes, seed)?;
        let content = examine(&options, symbol_size)?;
        let version = egress.version;
        let socket = egress.socket(&options.reach)?;
        let manifest = content.manifest.emit();
        let manifest_hash = fontana_wire::manifest_hash(&manifest);
        let control = control_objects(
            &options,
            &congestion_control,
            &content,
            &manifest,
            manifest_hash,
            symbol_size,
        )?;
        let tsi = options.tsi.unwrap_or_else(|| match is_plain {
            // 0 is not a TSI in ALC (RFC 5775, section 2.1).
            true => Tsi(u64::from(seed as u32).max(1)),
            false => Tsi::of_manifest(&manifest_hash),
        });
        let ticket = Ticket {
            sources: ticket_source(&options, socket.local_address().ip()).into_iter().collect(),
            group: options.reach.ticket_address().ip(),
            port: options.reach.ticket_address().port(),
            tsi,
            key: options.signer.as_ref().map(SecretKey::public_key),
            manifest: (!is_plain).then_some(manifest_hash),
            channels: options.reach.channels.clone(),
        };
        let shares = SenderMemory::of(options.memory, options.workers);
        let layout = Layout::of(
            &options,
            &content,
            symbol_size,
            congestion_control.channel_count(),
            &shares,
        );
        let sender = Sender::new(SenderConfig {
            tsi,
            objects: content
                .objects
                .iter()
                .map(|object| SendObject {
                    toi: object.toi,
                    layout: *object.source.layout(),
                    source_pass: options.source_pass,
                })
                .collect(),
            control,
            mode: options.mode,
            schedule: layout.schedule,
            rate_bytes_per_second,
            packet_overhead: version.header_size() as u32,
            round_symbols: layout.round_symbols,
            channels,
            sequence_in_cci: !is_plain,
            fti_in_packets,
            seed,
        });
        let transmission = Transmission {
            socket,
            sender,
            source_symbols: source_symbols(&content),
            encoders: encoders(&content, shares.kept_bytes),
            workers: options.workers.max(1),
            worker_bytes: shares.worker_bytes,
        };
        let manifest_hash = (!is_plain).then_some(manifest_hash);
        Ok(Self { ticket, manifest_hash, content, transmission })
    }

    /// The ticket for receivers.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// What is sent.
    pub fn manifest(&self) -> &Manifest {
        &self.content.manifest
    }

    /// Hash of the manifest; `None` for plain FLUTE and FCAST, which have none.
    pub fn manifest_hash(&self) -> Option<Hash> {
        self.manifest_hash
    }

    /// Source symbols of the whole content: as many symbols make one pass.
    pub fn source_symbols(&self) -> u64 {
        self.transmission.source_symbols
    }

    /// Sends until everything has been sent, nothing is left to send, or `stop` is set. `observe`
    /// is called a few times a second.
    ///
    /// # Errors
    /// [`IoError::Send`](crate::IoError::Send) if the network refuses for good. A file that changes
    /// is no error: it is given up, and the summary tells.
    pub fn run(
        self,
        stop: &Stop,
        observe: &mut dyn FnMut(&SendProgress<'_>),
    ) -> Result<SendSummary, Error> {
        driver::run(self.transmission, stop, observe)
    }
}

/// Examines and hashes the files.
fn examine(options: &SendOptions, symbol_size: u16) -> Result<Content, Error> {
    let content_options = ContentOptions {
        files: &options.files,
        name: options.name.as_deref(),
        filter: &options.filter,
        code: options.code,
        symbol_size,
        block_symbols: options
            .profile
            .max_block_symbols()
            .map_or(options.block_symbols, |most| most.min(options.block_symbols)),
        version: options.manifest_version,
        plain: options.metadata != MetadataMode::Manifest,
        workers: options.workers,
    };
    match &options.manifest {
        _ if options.metadata == MetadataMode::Fcast => {
            Content::compound(&content_options, options.slice_bytes)
        }
        Some(manifest) => Content::of_manifest(&content_options, manifest, options.rehash),
        None => Content::examine(&content_options),
    }
}

/// The clock of a session with layers; a session at a fixed rate is as fast as the cap allows.
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

/// The encoders of all objects, which share plans and memory.
fn encoders(content: &Content, kept_bytes: usize) -> BTreeMap<Toi, ObjectEncoder> {
    let plans = Arc::new(fontana_fec::PlanCache::new(4));
    let kept = Allowance::new(kept_bytes);
    content
        .objects
        .iter()
        .map(|object| {
            let source = Arc::clone(&object.source);
            let encoder = ObjectEncoder::new(source, Arc::clone(&plans), Arc::clone(&kept));
            (object.toi, encoder)
        })
        .collect()
}

fn source_symbols(content: &Content) -> u64 {
    let layouts = content.objects.iter().map(|object| object.source.layout());
    layouts.map(|layout| layout.total_source_symbols()).sum()
}

/// The source that the ticket names: none with mirrors, so that one ticket is for all of them. A
/// source-specific group has to name one (RFC 4607), and on the loopback interface the source says
/// where receivers listen.
fn ticket_source(options: &SendOptions, source: IpAddr) -> Option<IpAddr> {
    let group = options.reach.ticket_address().ip();
    let named = !options.mirrored || source.is_loopback() || fontana_net::is_source_specific(group);
    (named && !source.is_unspecified()).then_some(source)
}

/// What the session says of its channels. Where their number follows from the rate, the groups do
/// too, unless they were named.
fn congestion_control(
    options: &mut SendOptions,
    rate_bytes_per_second: u64,
    packet_bytes: u16,
) -> Result<CongestionControl, Error> {
    let groups = options.reach.channels.count();
    let layering = match &options.layering {
        None if groups == 1 => return Ok(CongestionControl::FixedRate),
        None => &Layering::new(LayeringScheme::Fixed),
        Some(layering) => layering,
    };
    if options.metadata != MetadataMode::Manifest {
        return Err(SetupError::OneChannelOnly("a plain FLUTE or FCAST session").into());
    }
    let control = layering.congestion_control(groups, rate_bytes_per_second, packet_bytes)?;
    let channels = control.channel_count();
    match &mut options.reach.channels {
        ChannelGroups::Consecutive(count) if *count == 1 => *count = channels,
        _ if groups == channels => {}
        _ => return Err(SetupError::Groups { groups, channels }.into()),
    }
    Ok(control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reach::Reach;

    #[test]
    fn a_ticket_for_mirrors_names_a_source_only_where_it_has_to() {
        let named = |group: &str, mirrored, source: &str| {
            let mut options = SendOptions::new(Vec::new());
            options.reach = Reach::to(group.parse().unwrap());
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
