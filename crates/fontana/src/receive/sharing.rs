//! What a receiver that shares needs of its system: the group of its site, its seal, and symbols
//! that are read for others. The endpoint decides ([`fontana_proto::share::Sharer`]).

use super::object::OpenObject;
use super::options::ReceiveOptions;
use super::resend::{CommittedObject, ReadFrom, SymbolRead, SymbolsRead};
use crate::error::Error;
use crate::seal::{GroupKey, GroupMembers, InstanceCipher};
use crate::sharing::Sharing;
use crate::system;
use crossbeam_channel::Receiver as ChannelReceiver;
use fontana_fec::{Esi, PlanCache};
use fontana_net::{
    FeedbackSocket, Interface, IpVersion, ReceiveConfig, ReceiveSocket, ReceiveThread,
    ReceiveThreadConfig, ReceivedBatch, SendError,
};
use fontana_proto::share::{MemberKeys, ShareOpener, SiteTurn};
use fontana_proto::{BlockId, BlockStock, Datagram, Port, ReceiveDone, SiteConfig, SymbolId};
use fontana_wire::{
    Hash, Manifest, MemberId, SealedShare, ShareContent, ShareMessage, TAG_BYTES, Toi,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of the kernel's receive buffer for messages: half a second of twenty members.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Memory of messages that wait to be handled.
const MESSAGES: ReceiveThreadConfig = ReceiveThreadConfig { batches: 4, batch_size: 128 << 10 };
/// How long a complete receiver stays for others that can have the symbols from a far sender.
const BESIDE_FAR_SENDER: Duration = Duration::from_millis(500);
/// Plans that are kept: the blocks of an object have at most two lengths.
const PLANS: usize = 2;

/// The group of the receivers of this site.
pub(super) struct SiteGroup {
    sending: Arc<FeedbackSocket>,
    group: SocketAddr,
    /// The name and the MTU of the interface.
    interface: (String, u32),
    is_required: bool,
    receiving: ReceiveThread,
    member: MemberId,
    group_key: Option<GroupKey>,
    /// Present with a group key, from when content is accepted.
    seal: Option<MemberSeal>,
    packet: Vec<u8>,
}

/// The messages of a group that has a key.
struct MemberSeal {
    content: ShareContent,
    cipher: InstanceCipher,
    /// Messages that it has sent.
    sent: u64,
    opener: ShareOpener<GroupMembers>,
}

impl SiteGroup {
    /// Joins the group. `None` if the options do not say so.
    ///
    /// # Errors
    /// [`Error`] if there is no interface, or no socket.
    pub(super) fn open(options: &ReceiveOptions) -> Result<Option<(SiteConfig, Self)>, Error> {
        let Some(sharing) = options.sharing else { return Ok(None) };
        match Self::join(options, sharing) {
            Err(error) if !sharing.is_required => {
                tracing::info!(%error, "nothing is shared");
                Ok(None)
            }
            joined => joined.map(Some),
        }
    }

    fn join(options: &ReceiveOptions, sharing: Sharing) -> Result<(SiteConfig, Self), Error> {
        let interface = options.addressing.interface()?;
        let is_far = is_far(options, &interface);
        let group = sharing.group_beside(options.addressing.address().ip());
        let mut config = ReceiveConfig::multicast(group.ip(), group.port(), &interface);
        config.receive_buffer = RECEIVE_BUFFER;
        let socket = ReceiveSocket::open(&config)?;
        // The socket for reports, if there is one: the process may be confined to it.
        let opened = || FeedbackSocket::open(IpVersion::of(group.ip())).map(Arc::new);
        let reporting = options.reporting.as_ref();
        let sending = reporting.map_or_else(opened, |it| Ok(Arc::clone(&it.socket)));
        let sending = sending.and_then(|it| it.use_interface(&interface).map(|()| it));
        let sending = sending.map_err(Error::system("open a socket for the site"))?;
        let receiving = ReceiveThread::spawn(vec![socket], MESSAGES)
            .map_err(Error::system("start the receive thread"))?;
        // No other receiver, and no other run, has this member.
        let member = MemberId(system::random_bytes()?);
        let (turn, stays_beside_sender) = match (is_far, sharing.is_required) {
            (true, true) => (SiteTurn::BeforeSender, sharing.stays),
            (true, false) => (SiteTurn::BeforeSender, BESIDE_FAR_SENDER),
            (false, true) => (SiteTurn::BesideSession, sharing.stays),
            (false, false) => (SiteTurn::AfterSender, Duration::ZERO),
        };
        let config = SiteConfig {
            seed: system::random_u64()?,
            member: member.number(),
            bytes_per_second: sharing.rate.as_bytes_per_second(),
            stays: sharing.stays,
            stays_beside_sender,
            turn,
        };
        let group_key = options.group_key.clone();
        let own = Self {
            sending,
            group,
            interface: (interface.name.clone(), interface.mtu),
            is_required: sharing.is_required,
            receiving,
            member,
            group_key,
            seal: None,
            packet: Vec::new(),
        };
        Ok((config, own))
    }

    /// Content was accepted.
    ///
    /// # Errors
    /// The network cannot carry its symbols.
    pub(super) fn begin(&mut self, hash: Hash, manifest: &Manifest) -> Result<(), SendError> {
        let (content, member) = (hash.into(), self.member);
        self.seal = self.group_key.clone().map(|key| {
            let keys = GroupMembers(key);
            let cipher = keys.cipher(content, member);
            let opener = ShareOpener::new(keys, content, member);
            MemberSeal { content, cipher, sent: 0, opener }
        });
        let sizes = manifest.objects().iter().map(|object| usize::from(object.oti.symbol_size));
        let overhead = if self.seal.is_some() { SealedShare::OVERHEAD } else { 0 };
        let size = ShareMessage::SYMBOL_HEADER + overhead + sizes.max().unwrap_or(0);
        let (name, mtu) = &self.interface;
        match size + IpVersion::of(self.group.ip()).header_size() <= *mtu as usize {
            true => Ok(()),
            false => Err(SendError::TooLarge { size, interface: name.clone(), mtu: Some(*mtu) }),
        }
    }

    /// Whether the application has to know if nothing is shared.
    pub(super) fn is_required(&self) -> bool {
        self.is_required
    }

    pub(super) fn messages(&self) -> ChannelReceiver<ReceivedBatch> {
        self.receiving.batches().clone()
    }

    /// The messages of a batch, of which those of strangers are dropped if the group has a key, and
    /// the others are decrypted in place.
    pub(super) fn open_batch(&mut self, batch: &mut ReceivedBatch) -> Vec<Datagram> {
        let is_sealed = self.group_key.is_some();
        if is_sealed {
            let seal = &mut self.seal;
            batch.retain(0, |_, datagram| seal.as_mut().is_some_and(|it| it.opener.open(datagram)));
        }
        let message = |(datagram, payload): (&Datagram, &[u8])| {
            let mut range = datagram.payload.clone();
            if is_sealed {
                range.end -= TAG_BYTES as u32;
                range.start = range.end - SealedShare::opened(payload).len() as u32;
            }
            Datagram { port: Port::Site, payload: range, ..datagram.clone() }
        };
        batch.iter().map(message).collect()
    }

    /// Sends a message.
    pub(super) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let Self { sending, group, seal, packet, member, .. } = self;
        let datagram = match (seal, ShareMessage::parse(message)) {
            (Some(seal), Ok(message)) => {
                let (content, counter) = (seal.content, seal.sent);
                seal.sent += 1;
                packet.clear();
                let sealed = SealedShare { content, member: *member, counter };
                sealed.emit(&message, &seal.cipher, packet);
                &*packet
            }
            _ => message,
        };
        sending.send_to_group(datagram, *group)
    }
}

/// Whether all senders that the receiver knows of are beyond its network.
fn is_far(options: &ReceiveOptions, interface: &Interface) -> bool {
    let sources = &options.expectation.sources;
    !sources.is_empty() && !sources.iter().any(|&source| interface.is_on_link(source))
}

/// Symbols that are read for other receivers of the site.
pub(super) struct SharedSymbols {
    directory: PathBuf,
    manifest: Option<Arc<Manifest>>,
    plans: Arc<PlanCache>,
    /// The batch of each block that is being read.
    reading: BTreeMap<BlockId, u32>,
    /// Those that were read.
    prepared: BTreeMap<BlockId, BTreeMap<u64, Prepared>>,
    /// Objects whose files have their names.
    named: BTreeSet<Toi>,
    committed: BTreeMap<Toi, Arc<CommittedObject>>,
}

struct Prepared {
    bytes: Vec<u8>,
    symbol_size: usize,
}

impl SharedSymbols {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            manifest: None,
            plans: Arc::new(PlanCache::new(PLANS)),
            reading: BTreeMap::new(),
            prepared: BTreeMap::new(),
            named: BTreeSet::new(),
            committed: BTreeMap::new(),
        }
    }

    /// Content was accepted.
    pub(super) fn begin(&mut self, manifest: &Arc<Manifest>) {
        self.manifest = Some(Arc::clone(manifest));
    }

    /// The files of an object have their names.
    pub(super) fn on_committed(&mut self, toi: Toi) {
        self.named.insert(toi);
    }

    /// The symbols to read; `None` if they are nowhere.
    pub(super) fn read(
        &mut self,
        (block, batch): (BlockId, u32),
        esis: Vec<Esi>,
        stock: BlockStock,
        objects: &BTreeMap<Toi, Arc<OpenObject>>,
    ) -> Option<SymbolRead> {
        let from = self.source(block, stock, objects)?;
        self.reading.insert(block, batch);
        Some(SymbolRead { block, batch, esis, from })
    }

    fn source(
        &mut self,
        block: BlockId,
        stock: BlockStock,
        objects: &BTreeMap<Toi, Arc<OpenObject>>,
    ) -> Option<ReadFrom> {
        let plans = Arc::clone(&self.plans);
        if self.named.contains(&block.toi) {
            let (manifest, directory) = (Arc::clone(self.manifest.as_ref()?), &self.directory);
            let object = self.committed.entry(block.toi).or_insert_with(|| {
                let (directory, encoder) = (directory.clone(), Default::default());
                Arc::new(CommittedObject { manifest, directory, plans, encoder })
            });
            return Some(ReadFrom::Files(Arc::clone(object)));
        }
        let object = Arc::clone(objects.get(&block.toi)?);
        Some(match stock {
            BlockStock::Whole => ReadFrom::Whole { object, plans },
            BlockStock::Part { repair } => ReadFrom::Part { object, repair },
        })
    }

    /// Symbols were read, or could not be.
    pub(super) fn keep(&mut self, read: SymbolsRead) -> ReceiveDone {
        let SymbolsRead { block, batch, symbols } = read;
        let manifest = self.manifest.as_ref();
        let object = manifest.and_then(|manifest| manifest.object(block.toi.0 as u32));
        let is_wanted = self.reading.remove(&block) == Some(batch);
        let symbols = symbols.filter(|_| is_wanted).zip(object);
        let is_read = symbols.is_some();
        if let Some((bytes, object)) = symbols {
            let prepared = Prepared { bytes, symbol_size: object.oti.symbol_size.into() };
            self.prepared.entry(block).or_default().insert(batch.into(), prepared);
        }
        ReceiveDone::Read { block, batch, is_read }
    }

    /// Appends a symbol that was read to a message. False if it is not there any more.
    pub(super) fn write(&mut self, symbol: &SymbolId, message: &mut Vec<u8>) -> bool {
        let Some(batches) = self.prepared.get_mut(&symbol.block) else { return false };
        *batches = batches.split_off(&symbol.batch.0);
        let Some(prepared) = batches.get(&symbol.batch.0) else { return false };
        let start = symbol.index as usize * prepared.symbol_size;
        let bytes = prepared.bytes.get(start..start + usize::from(symbol.size));
        message.extend_from_slice(bytes.unwrap_or_default());
        bytes.is_some()
    }

    /// What was read of a block is not needed any more.
    pub(super) fn release(&mut self, block: BlockId) {
        self.reading.remove(&block);
        self.prepared.remove(&block);
    }
}
