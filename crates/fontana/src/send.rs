//! Sending: files in, packets out.
//!
//! ```no_run
//! use fontana::{SendOptions, SendSession, Stop};
//!
//! let options = SendOptions::new(vec!["image.raw".into()]);
//! let session = SendSession::prepare(options)?;
//! println!("fontana recv '{}'", session.ticket());
//! let summary = session.run(&Stop::new(), &mut |_progress| {})?;
//! println!("{} bytes sent", summary.stats.wire_bytes);
//! # Ok::<(), fontana::Error>(())
//! ```

use crate::content::{Content, ContentOptions};
use crate::error::{Error, SetupError};
use crate::geometry::{self, Code};
use crate::layers::{Layering, LayeringScheme};
use crate::memory;
use crate::memory::SenderMemory;
use crate::outcome::Outcome;
use crate::reach::Reach;
use crate::stop::Stop;
use fontana_fec::{EncodingId, Oti};
use fontana_net::{ChannelAddress, Interface, IpVersion, MtuDrop, SendConfig, SendSocket};
use fontana_proto::{
    ChannelClock, ControlObject, Instant, MetadataMode, Profile, SendMode, SendObject, Sender,
    SenderConfig, SenderStats,
};
use fontana_store::{Allowance, Filter, ObjectEncoder};
use fontana_wire::{
    ChannelGroups, CongestionControl, ContentKind, FdtExtension, Hash, InstanceId, Manifest,
    ObjectRef, SecretKey, SessionHead, Ticket, Toi, Tsi,
};
use order::Layout;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

mod driver;
mod order;
mod stream;
mod train;

pub use stream::{StreamOptions, StreamSession};

/// How blocks are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ordering {
    /// All blocks of all files advance together, as far as [`SendOptions::profile`] has it: join at any
    /// time, no block is the last.
    #[default]
    Even,
    /// One block after the other, each with so many repair symbols per thousand source symbols,
    /// for receivers that write blocks in order.
    Sequential {
        /// Repair symbols per thousand source symbols.
        repair_permille: u32,
    },
}

/// What to send, and how. Everything has a safe default.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Files, and directories with all that is in them. Receivers see the last component of each.
    ///
    /// All of them are one session and scheduled together: what an application submits to FCAST's tool
    /// with KEEP_DATA before it says PUSH_DATA (Roca, Mordelet 2002, section 4.2.3). One object after the
    /// other, as that tool sends what is pushed at once, is [`Ordering::Sequential`].
    pub files: Vec<PathBuf>,
    /// What receivers know the file by, instead of its own name: for a single file.
    pub name: Option<Vec<u8>>,
    /// Which of the files in a directory.
    pub filter: Filter,
    /// Where to.
    pub reach: Reach,
    /// Cap on the bytes per second on the wire, IP and UDP headers included. With several unicast
    /// hosts their copies share it.
    pub rate_bytes_per_second: u64,
    /// How the rate is shared out to the channels of `reach`. By default a session of several channels
    /// has layers of doubling rates.
    pub layering: Option<Layering>,
    /// All networks that the packets can reach are the operator's, and have room for the rate: without
    /// congestion control, a session goes beyond this network (`reach.hop_limit`) only if this is said
    /// (RFC 8085, section 4.1).
    pub controlled_network: bool,
    /// Transport session identifier; if not given, that of the manifest ([`Tsi::of_manifest`]), and
    /// for plain FLUTE and FCAST one drawn at random.
    pub tsi: Option<Tsi>,
    /// For ever, or a finite amount.
    pub mode: SendMode,
    /// In which order.
    pub ordering: Ordering,
    /// What the session is to be good at: the order that [`Ordering::Even`] stands for, and how long
    /// blocks are. Receivers have a part in it, too: [`Profile::policy`].
    pub profile: Profile,
    /// With which code.
    pub code: Code,
    /// Source symbols per block, about.
    pub block_symbols: u32,
    /// Bytes per symbol; from the interface's MTU if not given.
    pub symbol_size: Option<u16>,
    /// How receivers learn what is sent. Plain FLUTE (RFC 6726) and FCAST (RFC 6968) sessions have
    /// nothing of our own, for other programs: one object per file, or for each slice of one.
    pub metadata: MetadataMode,
    /// For FCAST: bytes of a file that an object has at most; about a source block if not given.
    pub slice_bytes: Option<u64>,
    /// Whether this sender sends the source symbols; others of the same content do not.
    pub source_pass: bool,
    /// The manifest of another sender, or of an earlier life of this one, to pour the same symbols:
    /// the files must be what it says, and it decides on code, symbol size, blocks and version.
    pub manifest: Option<Manifest>,
    /// Hash files even if size and time of last modification are those of `manifest`.
    pub rehash: bool,
    /// Other senders pour the same content: the ticket names no source, where the group permits.
    pub mirrored: bool,
    /// Signs the session head.
    pub signer: Option<SecretKey>,
    /// Version of the content: tells receivers of a publisher which of two is newer.
    pub manifest_version: u64,
    /// Memory to use, in bytes, whatever the size of the files.
    pub memory: usize,
    /// Threads that read and encode.
    pub workers: usize,
    /// Seed of everything random that need not be secret; from the system if not given.
    pub seed: Option<u64>,
}

impl SendOptions {
    /// Sends `files` with the defaults: the default group, 100 Mbit/s at most, this network only.
    pub fn new(files: Vec<PathBuf>) -> Self {
        Self {
            files,
            name: None,
            filter: Filter::default(),
            reach: Reach::default(),
            rate_bytes_per_second: 100_000_000 / 8,
            layering: None,
            controlled_network: false,
            tsi: None,
            mode: SendMode::OnDemand,
            ordering: Ordering::Even,
            profile: Profile::default(),
            code: Code::RaptorQ,
            block_symbols: geometry::DEFAULT_BLOCK_SYMBOLS,
            symbol_size: None,
            metadata: MetadataMode::Manifest,
            slice_bytes: None,
            source_pass: true,
            manifest: None,
            rehash: false,
            mirrored: false,
            signer: None,
            manifest_version: 1,
            memory: memory::DEFAULT_MEMORY,
            workers: crate::system::default_workers(),
            seed: None,
        }
    }
}

/// Where a sender stands.
#[derive(Clone, Copy, Debug)]
pub struct SendProgress<'a> {
    /// Time since sending began.
    pub elapsed: Duration,
    /// Counters of the protocol.
    pub stats: SenderStats,
    /// Source symbols of the whole content: as many symbols make one pass.
    pub source_symbols: u64,
    /// Datagrams that this host could not send, of those counted in `stats`.
    pub lost: u64,
    /// The last period in which packets did not fit the interface's MTU any more; they are among
    /// those that are `lost`.
    pub mtu_drop: Option<&'a MtuDrop>,
    /// Files that had to be given up so far, with the reason.
    pub failures: &'a [Arc<Error>],
}

/// How a sender ended.
#[derive(Debug)]
pub struct SendSummary {
    /// The outcome.
    pub outcome: Outcome,
    /// Where it stood.
    pub elapsed: Duration,
    /// Counters of the protocol.
    pub stats: SenderStats,
    /// Datagrams that this host could not send, of those counted in `stats`.
    pub lost: u64,
    /// Files that had to be given up, with the reason.
    pub failures: Vec<Arc<Error>>,
}

/// A session that is ready to be sent: files examined and hashed, socket open.
pub struct SendSession {
    ticket: Ticket,
    content: Content,
    manifest_hash: Option<Hash>,
    socket: SendSocket,
    sender: Sender,
    encoders: BTreeMap<Toi, ObjectEncoder>,
    workers: usize,
    worker_bytes: usize,
}

/// Bytes of our packets' LCT header, with 32-bit TSI and TOI; the FEC payload id follows.
const LCT_HEADER_BYTES: usize = 16;
/// Bytes kept free in every packet for authentication (RFC 6584: 4 + 4 + 16, or an AEAD tag and a
/// counter), so that switching it on does not change the geometry of the content.
const AUTHENTICATION_BYTES: usize = 36;
/// What EXT_FTI adds to a header; EXT_FDT adds 4 more.
const FTI_BYTES: u16 = 16;
const FDT_EXTENSION_BYTES: u16 = 4;
/// Shortest slice of a file: its header has a quarter of that already.
const MIN_SLICE: u64 = 1024;
/// How long a file delivery table stays valid. The session does not outlive it.
const FDT_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);

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
        let way = Way::of(&options.reach)?;
        let is_plain = options.metadata != MetadataMode::Manifest;
        let fti_in_packets = options.metadata == MetadataMode::Fcast;
        let symbol_size = way.symbol_size(options.symbol_size, options.code, fti_in_packets)?;
        let seed = options.seed.map_or_else(crate::system::random_u64, Ok)?;
        let rate_bytes_per_second =
            options.rate_bytes_per_second / options.reach.copies().max(1) as u64;
        let packet_bytes = way.packet_bytes(symbol_size, options.code);
        let congestion_control =
            congestion_control(&mut options, rate_bytes_per_second, packet_bytes)?;
        check_head_room(&congestion_control, symbol_size)?;
        let channels = match &congestion_control {
            // As fast as the cap allows, without a clock.
            CongestionControl::FixedRate => None,
            layered => {
                let start = Instant::ZERO;
                Some(ChannelClock::new(layered, rate_bytes_per_second, packet_bytes, start, seed)?)
            }
        };
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
            plain: is_plain,
            workers: options.workers,
        };
        let content = match &options.manifest {
            _ if fti_in_packets => Content::compound(&content_options, options.slice_bytes)?,
            Some(manifest) => Content::of_manifest(&content_options, manifest, options.rehash)?,
            None => Content::examine(&content_options)?,
        };
        let version = way.version;
        let socket = way.socket(&options.reach)?;
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
        let plans = Arc::new(fontana_fec::PlanCache::new(4));
        let kept = Allowance::new(shares.kept_bytes);
        let encoders = content
            .objects
            .iter()
            .map(|object| {
                let source = Arc::clone(&object.source);
                let encoder = ObjectEncoder::new(source, Arc::clone(&plans), Arc::clone(&kept));
                (object.toi, encoder)
            })
            .collect();
        Ok(Self {
            ticket,
            manifest_hash: (!is_plain).then_some(manifest_hash),
            content,
            socket,
            sender,
            encoders,
            workers: options.workers.max(1),
            worker_bytes: shares.worker_bytes,
        })
    }

    /// What a receiver needs to know.
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
        let layouts = self.content.objects.iter().map(|object| object.source.layout());
        layouts.map(|layout| layout.total_source_symbols()).sum()
    }

    /// Sends until everything has been sent, nothing is left to send, or `stop` says so. `observe`
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
        driver::run(self, stop, observe)
    }
}

/// Where packets leave this host.
struct Way {
    interface: Interface,
    version: IpVersion,
}

impl Way {
    fn of(reach: &Reach) -> Result<Self, Error> {
        let interface = reach.interface()?;
        Ok(Self { interface, version: IpVersion::of(reach.address().ip()) })
    }

    /// Bytes of a symbol: those that were asked for, or what fits a packet, with EXT_FTI in it or
    /// without.
    fn symbol_size(&self, wanted: Option<u16>, code: Code, fti: bool) -> Result<u16, Error> {
        wanted.map_or_else(
            || {
                let header = LCT_HEADER_BYTES
                    + if fti { FTI_BYTES.into() } else { 0 }
                    + fontana_wire::payload_id_size(code.encoding_id());
                let (mtu, reserved) = (self.interface.mtu, AUTHENTICATION_BYTES);
                let size = fontana_net::symbol_size_for(mtu, self.version, header, reserved)?;
                Ok(size as u16)
            },
            Ok,
        )
    }

    /// Bytes of a packet of content on the wire.
    fn packet_bytes(&self, symbol_size: u16, code: Code) -> u16 {
        let payload_id = fontana_wire::payload_id_size(code.encoding_id());
        let headers = self.version.header_size() + LCT_HEADER_BYTES + payload_id;
        symbol_size.saturating_add(headers as u16)
    }

    fn socket(&self, reach: &Reach) -> Result<SendSocket, Error> {
        let destinations = reach.destinations(&self.interface)?;
        let config = match &destinations[..] {
            [ChannelAddress::Unicast(hosts)] => SendConfig::unicast(vec![hosts.clone()]),
            _ => SendConfig::new(&self.interface, destinations),
        };
        Ok(SendSocket::new(&SendConfig { hop_limit: reach.hop_limit, ..config })?)
    }
}

/// The source that the ticket names: with mirrors none, so that one ticket is for all of them. A
/// source-specific group has to name one (RFC 4607); and on the loopback interface the source tells
/// receivers where to listen.
fn ticket_source(options: &SendOptions, source: IpAddr) -> Option<IpAddr> {
    let group = options.reach.ticket_address().ip();
    let named = !options.mirrored || source.is_loopback() || fontana_net::is_source_specific(group);
    (named && !source.is_unspecified()).then_some(source)
}

fn check(options: &SendOptions) -> Result<(), Error> {
    if options.files.is_empty() {
        return Err(SetupError::NothingToSend.into());
    }
    if options.metadata != MetadataMode::Manifest
        && options.code.encoding_id() == EncodingId::EXPANDABLE
    {
        return Err(SetupError::CodeOfOurOwn.into());
    }
    let yields = options.layering.as_ref().is_some_and(|l| l.scheme.is_controlled());
    check_reach(&options.reach, options.controlled_network || yields)?;
    if options.slice_bytes.is_some_and(|bytes| bytes < MIN_SLICE) {
        return Err(SetupError::Range {
            what: "the length of a slice in bytes",
            actual: options.slice_bytes.unwrap_or_default(),
            allowed: "at least 1024",
        }
        .into());
    }
    Numbers {
        rate_bytes_per_second: options.rate_bytes_per_second,
        tsi: options.tsi,
        memory: options.memory,
        symbol_size: options.symbol_size,
        block_symbols: options.block_symbols,
    }
    .check(options.code.max_block_symbols())
}

/// Whether packets may go as far as they are to: where receivers yield to other traffic, or it is said
/// that there is none. Hosts that get a copy each were named one by one,
/// and the hop limit is not for them.
fn check_reach(reach: &Reach, harmless: bool) -> Result<(), Error> {
    let Reach { hop_limit, .. } = *reach;
    if hop_limit > 1 && reach.address().ip().is_multicast() && !harmless {
        return Err(SetupError::UncontrolledNetwork { hop_limit }.into());
    }
    Ok(())
}

/// Numbers that any sender is given.
struct Numbers {
    rate_bytes_per_second: u64,
    tsi: Option<Tsi>,
    memory: usize,
    symbol_size: Option<u16>,
    block_symbols: u32,
}

impl Numbers {
    /// `longest`: most source symbols of a block.
    fn check(&self, longest: u32) -> Result<(), Error> {
        let range = |what, actual, allowed| Err(SetupError::Range { what, actual, allowed }.into());
        if self.rate_bytes_per_second < 1000 {
            let bits = self.rate_bytes_per_second * 8;
            return range("the rate in bits per second", bits, "at least 8000");
        }
        if let Some(tsi) = self.tsi
            && !(1..=u64::from(u32::MAX)).contains(&tsi.0)
        {
            return range("the TSI", tsi.0, "1 to 4294967295");
        }
        if self.memory < memory::MIN_MEMORY {
            return range("the memory in bytes", self.memory as u64, "at least 32M");
        }
        let least = SessionHead::MAX_SIZE as u16 + FTI_BYTES + FDT_EXTENSION_BYTES;
        if let Some(size) = self.symbol_size
            && (size < least || !size.is_multiple_of(4))
        {
            let allowed = "a multiple of 4, at least 220";
            return range("the symbol size", u64::from(size), allowed);
        }
        if !(1..=longest).contains(&self.block_symbols) {
            return range("the block length", self.block_symbols.into(), geometry::block_lengths());
        }
        Ok(())
    }
}

/// What the session says of its channels. Where their number follows from the rate, the groups do too,
/// unless they were named.
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

/// Whether the session head, which grows with what it says of layers, fits in one symbol.
fn check_head_room(congestion_control: &CongestionControl, symbol_size: u16) -> Result<(), Error> {
    let least = SessionHead::MAX_SIZE
        + congestion_control.parameter_size()
        + usize::from(FTI_BYTES + FDT_EXTENSION_BYTES);
    if usize::from(symbol_size) < least {
        let (what, actual) = ("the symbol size", u64::from(symbol_size));
        let allowed = "at least 220, and 4 more for each layer that is listed";
        return Err(SetupError::Range { what, actual, allowed }.into());
    }
    Ok(())
}

/// Session head, manifest and file delivery table; only the last for plain FLUTE, and for FCAST the
/// descriptor of the carousel.
fn control_objects(
    options: &SendOptions,
    congestion_control: &CongestionControl,
    content: &Content,
    manifest: &[u8],
    manifest_hash: Hash,
    symbol_size: u16,
) -> Result<Vec<ControlObject>, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut control = Vec::new();
    if options.metadata == MetadataMode::Fcast {
        let (toi, descriptor) = content.carousel();
        // Packets of content have EXT_FTI, too.
        let oti = plain_control_oti(options.code, descriptor.len() as u64, symbol_size);
        control.push(ControlObject::new(toi, oti, &descriptor, None, 1)?);
        return Ok(control);
    }
    let is_plain = options.metadata == MetadataMode::Flute;
    let size = symbol_size - FTI_BYTES;
    let manifest_oti = geometry::control_oti(manifest.len() as u64, size);
    if !is_plain {
        let head = SessionHead {
            instance: InstanceId(crate::system::random_bytes()?),
            manifest_version: options.manifest_version,
            kind: ContentKind::Manifest,
            manifest: ObjectRef {
                toi: Toi::MANIFEST.0 as u32,
                oti: manifest_oti,
                hash: manifest_hash,
            },
            expires_unix_seconds: None,
            rate_bytes_per_second: NonZeroU64::new(options.rate_bytes_per_second),
            congestion_control: congestion_control.clone(),
        };
        let mut bytes = head.emit(options.signer.as_ref());
        bytes.resize(usize::from(size), 0);
        let oti = geometry::control_oti(bytes.len() as u64, size);
        control.push(ControlObject::new(Toi::HEAD, oti, &bytes, None, 2)?);
        control.push(ControlObject::new(Toi::MANIFEST, manifest_oti, manifest, None, 4)?);
    }
    let table = content.file_delivery_table(now + FDT_LIFETIME).emit();
    let (length, size) = (table.len() as u64, size - FDT_EXTENSION_BYTES);
    let oti = match is_plain {
        true => plain_control_oti(options.code, length, size),
        false => geometry::control_oti(length, size),
    };
    let extension = FdtExtension {
        version: FdtExtension::FLUTE_VERSION,
        // Another life of a sender with the same TSI has another table (RFC 6726, section 3.4.1).
        instance_id: now.as_secs() as u32 & FdtExtension::MAX_INSTANCE_ID,
    };
    let rhythm = if is_plain { 1 } else { 4 };
    control.push(ControlObject::new(Toi::FDT, oti, &table, Some(extension), rhythm)?);
    if let Some((tois, oti)) = content.empty_files() {
        control.push(ControlObject::empty_files(&tois, oti, rhythm));
    }
    Ok(control)
}

/// The parameters of a control object for other programs: a session without RaptorQ has none for its
/// control objects either, as its receivers may not know it.
fn plain_control_oti(code: Code, length: u64, symbol_size: u16) -> Oti {
    match code {
        Code::RaptorQ => geometry::control_oti(length, symbol_size),
        _ => geometry::object_oti(Code::None, length, symbol_size, 1 << 16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
