//! Receivers of one site that complete each other: the group that they send to, and what becomes of
//! their messages. [`Sharer`] decides.

use super::object::OpenObject;
use super::options::ReceiveOptions;
use super::resend::{CommittedObject, ReadFrom, SymbolRead, SymbolsRead};
use crate::error::Error;
use crate::seal::{GroupKey, GroupMembers, InstanceCipher};
use crate::sharing::{ShareReport, Sharing};
use fontana_fec::{Esi, Padding, PlanCache};
use fontana_net::{
    ChannelAddress, ReceiveConfig, ReceiveSocket, ReceiveThread, ReceiveThreadConfig,
    ReceivedBatch, SendConfig, SendError, SendSocket,
};
use fontana_proto::share::{
    MemberKeys, ShareAnswer, ShareConfig, ShareOpener, ShareOutput, Sharer,
};
use fontana_proto::{BlockId, Instant, Receiver, ShareOrigin};
use fontana_wire::{
    Hash, Manifest, MemberId, SealedShare, ShareBody, ShareContent, ShareMessage, ShareSymbol,
    SharedBlock, TAG_BYTES, Toi,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of the kernel's receive buffer for messages: half a second of twenty members.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Memory of messages that wait to be handled.
const MESSAGES: ReceiveThreadConfig = ReceiveThreadConfig { batches: 4, batch_size: 128 << 10 };
/// Plans that are kept: the blocks of an object have at most two lengths.
const PLANS: usize = 2;
/// Symbols that a receiver sends at once for addresses from which nothing right has come, for each
/// symbol of its content.
const MOST_COPIES: u64 = 2;

/// A receiver that shares.
pub(super) struct ShareStage {
    sharing: Sharing,
    sending: SendSocket,
    directory: PathBuf,
    group_key: Option<GroupKey>,
    /// Present when content is accepted.
    shared: Option<Shared>,
    /// The host cannot send, or the network cannot carry the symbols.
    is_off: bool,
    /// The reason, until it is reported.
    failure: Option<Error>,
}

/// The content that is shared.
struct Shared {
    id: ShareContent,
    member: MemberId,
    /// Present with a group key.
    seal: Option<MemberSeal>,
    sharer: Sharer,
    manifest: Arc<Manifest>,
    plans: Arc<PlanCache>,
    /// Symbols that were read, and are to be sent.
    prepared: BTreeMap<BlockId, BTreeMap<u32, Prepared>>,
    /// Objects whose files have their names.
    committed: BTreeMap<Toi, Arc<CommittedObject>>,
    named: BTreeSet<Toi>,
    packet: Vec<u8>,
}

struct Prepared {
    bytes: Vec<u8>,
    symbol_size: usize,
}

/// The messages of a group that has a key.
struct MemberSeal {
    cipher: InstanceCipher,
    /// Messages that it has sent.
    sent: u64,
    opener: ShareOpener<GroupMembers>,
}

impl MemberSeal {
    fn new(key: GroupKey, content: ShareContent, member: MemberId) -> Self {
        let keys = GroupMembers(key);
        let cipher = keys.cipher(content, member);
        Self { cipher, sent: 0, opener: ShareOpener::new(keys, content, member) }
    }
}

impl ShareStage {
    /// Joins the group of the receivers of this site. `None` if the options do not say so.
    ///
    /// # Errors
    /// [`Error`] if there is no interface, or no socket.
    pub(super) fn open(options: &ReceiveOptions) -> Result<Option<(Self, ReceiveThread)>, Error> {
        let Some(sharing) = options.sharing else { return Ok(None) };
        let interface = options.addressing.interface()?;
        let group = sharing.group_beside(options.addressing.address().ip());
        let mut config = ReceiveConfig::multicast(group.ip(), group.port(), &interface);
        config.receive_buffer = RECEIVE_BUFFER;
        let socket = ReceiveSocket::open(&config)?;
        // The hop limit is 1: no router passes messages on.
        let sending = SendConfig::new(&interface, vec![ChannelAddress::Multicast(group)]);
        let sending = SendSocket::new(&sending)?;
        let receiving = ReceiveThread::spawn(vec![socket], MESSAGES)
            .map_err(Error::system("start the receive thread"))?;
        let stage = Self {
            sharing,
            sending,
            directory: options.directory.clone(),
            group_key: options.group_key.clone(),
            shared: None,
            is_off: false,
            failure: None,
        };
        Ok(Some((stage, receiving)))
    }

    /// Content was accepted. `seed` and `member`: random. No other content has this member.
    pub(super) fn begin(
        &mut self,
        seed: u64,
        member: MemberId,
        hash: Hash,
        manifest: &Arc<Manifest>,
    ) {
        let id = hash.into();
        let seal = self.group_key.clone().map(|key| MemberSeal::new(key, id, member));
        let config = ShareConfig {
            seed,
            member: member.number(),
            bytes_per_second: self.sharing.rate.as_bytes_per_second(),
            max_unproven_bytes: manifest.transfer_length().saturating_mul(MOST_COPIES),
        };
        let sizes = manifest.objects().iter().map(|object| usize::from(object.oti.symbol_size));
        let overhead = if seal.is_some() { SealedShare::OVERHEAD } else { 0 };
        let largest = ShareMessage::SYMBOL_HEADER + overhead + sizes.max().unwrap_or(0);
        self.note(self.sending.check_size(largest));
        self.shared = Some(Shared {
            id,
            member,
            seal,
            sharer: Sharer::new(config),
            manifest: Arc::clone(manifest),
            plans: Arc::new(PlanCache::new(PLANS)),
            prepared: BTreeMap::new(),
            committed: BTreeMap::new(),
            named: BTreeSet::new(),
            packet: Vec::new(),
        });
    }

    /// The files of an object have their names.
    pub(super) fn on_committed(&mut self, toi: Toi) {
        if let Some(shared) = &mut self.shared {
            shared.named.insert(toi);
        }
    }

    /// Handles messages, decrypted in place with a group key. The driver then polls with their
    /// slab.
    pub(super) fn on_batch(
        &mut self,
        now: Instant,
        batch: &mut ReceivedBatch,
        receiver: &mut Receiver,
    ) {
        let Some(shared) = self.shared.as_mut().filter(|_| !self.is_off) else { return };
        if let Some(seal) = &mut shared.seal {
            batch.retain(0, |_, datagram| seal.opener.open(datagram));
        }
        let tag = if shared.seal.is_some() { TAG_BYTES as u32 } else { 0 };
        let batch = batch.as_datagrams();
        for (datagram, payload) in batch.iter() {
            let payload =
                if shared.seal.is_some() { SealedShare::opened(payload) } else { payload };
            let Ok(message) = ShareMessage::parse(payload) else { continue };
            if message.content != shared.id {
                continue;
            }
            let end = datagram.payload.end.saturating_sub(tag);
            let origin = ShareOrigin { from: datagram.from.ip(), end };
            receiver.handle_share(now, &mut shared.sharer, origin, &message, batch.slab);
        }
    }

    /// Symbols were read, or could not be.
    pub(super) fn on_read(&mut self, now: Instant, read: SymbolsRead) {
        let Some(shared) = &mut self.shared else { return };
        let SymbolsRead { block, batch, symbols } = read;
        let is_needed = shared.sharer.on_read(now, block, batch, symbols.is_some());
        if let Some(bytes) = symbols.filter(|_| is_needed)
            && let Some(object) = shared.manifest.object(block.toi.0 as u32)
        {
            let symbol_size = usize::from(object.oti.symbol_size);
            let batches = shared.prepared.entry(block).or_default();
            batches.insert(batch, Prepared { bytes, symbol_size });
        }
    }

    /// Sends what is due. Returns the symbols to read.
    pub(super) fn drive(
        &mut self,
        now: Instant,
        receiver: &mut Receiver,
        objects: &BTreeMap<Toi, Arc<OpenObject>>,
    ) -> Vec<SymbolRead> {
        let mut reads = Vec::new();
        let Some(shared) = self.shared.as_mut().filter(|_| !self.is_off) else { return reads };
        let mut sent = Ok(());
        while sent.is_ok()
            && let Some(output) = shared.sharer.poll(now, &*receiver)
        {
            match output {
                ShareOutput::Ask { block, request } => {
                    let body = ShareBody::Request(request);
                    sent = shared.send(&mut self.sending, block, body);
                }
                ShareOutput::Read { block, batch, esis, has_block } => {
                    let from = shared.source(block, has_block, receiver, objects, &self.directory);
                    match from {
                        Some(from) => reads.push(SymbolRead { block, batch, esis, from }),
                        None => _ = shared.sharer.on_read(now, block, batch, false),
                    }
                }
                ShareOutput::Answer(answer) => {
                    sent = shared.answer(&mut self.sending, &answer);
                }
                ShareOutput::Vain { block } => receiver.drop_shared(block),
                ShareOutput::Release { block } => _ = shared.prepared.remove(&block),
            }
        }
        self.note(sent);
        reads
    }

    fn note(&mut self, result: Result<(), SendError>) {
        if let Err(error) = result {
            (self.is_off, self.failure) = (true, Some(error.into()));
        }
    }

    /// Why nothing is shared any more, once.
    pub(super) fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    /// When to drive next; `None` if there is nothing to share.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let shared = self.shared.as_ref().filter(|_| !self.is_off)?;
        Some(shared.sharer.poll_timeout())
    }

    /// Until when a complete receiver waits for requests: those for which it sends something count.
    /// `None`: it cannot answer.
    pub(super) fn serves_until(&self) -> Option<Instant> {
        let shared = self.shared.as_ref().filter(|_| !self.is_off)?;
        Some(shared.sharer.answered_at() + self.sharing.stays)
    }

    /// How long it waits for others.
    pub(super) fn stays(&self) -> Duration {
        self.sharing.stays
    }

    /// What it has done.
    pub(super) fn report(&self) -> ShareReport {
        self.shared.as_ref().map(|shared| shared.sharer.stats()).unwrap_or_default()
    }
}

impl Shared {
    fn send(
        &mut self,
        to: &mut SendSocket,
        block: BlockId,
        body: ShareBody<'_>,
    ) -> Result<(), SendError> {
        let block = SharedBlock { toi: block.toi.0 as u32, sbn: block.sbn.0 };
        let (content, member) = (self.id, self.member);
        let message = ShareMessage { content, member: member.number(), block, body };
        self.packet.clear();
        match &mut self.seal {
            Some(seal) => {
                let sealed = SealedShare { content, member, counter: seal.sent };
                seal.sent += 1;
                sealed.emit(&message, &seal.cipher, &mut self.packet);
            }
            None => message.emit(&mut self.packet),
        }
        let length = self.packet.len();
        to.send_batch(0, &self.packet, length).map(|_| ())
    }

    fn answer(&mut self, to: &mut SendSocket, answer: &ShareAnswer) -> Result<(), SendError> {
        let &ShareAnswer { block, esi, batch, index, has_block, to: member, echo_us } = answer;
        let Some(batches) = self.prepared.get_mut(&block) else { return Ok(()) };
        *batches = batches.split_off(&batch);
        let Some(prepared) = batches.remove(&batch) else { return Ok(()) };
        let start = index * prepared.symbol_size;
        let symbol = prepared.bytes.get(start..start + prepared.symbol_size).unwrap_or_default();
        let bytes = symbol.get(..self.length(block, esi, symbol.len())).unwrap_or(symbol);
        let body =
            ShareBody::Symbol(ShareSymbol { has_block, to: member, echo_us, esi: esi.0, bytes });
        let sent = self.send(to, block, body);
        self.prepared.entry(block).or_default().insert(batch, prepared);
        sent
    }

    /// Bytes of a symbol: the last source symbol of some codes is sent without its padding.
    fn length(&self, block: BlockId, esi: Esi, size: usize) -> usize {
        let object = self.manifest.object(block.toi.0 as u32);
        let layout = object.and_then(|object| object.oti.layout().ok());
        let Some(layout) =
            layout.filter(|it| it.oti().scheme.profile().padding == Padding::Omitted)
        else {
            return size;
        };
        let is_last_block = block.sbn.0 + 1 == layout.block_count();
        let is_last = is_last_block && layout.source_symbols(block.sbn) == Some(esi.0 + 1);
        let rest = (layout.oti().transfer_length % size.max(1) as u64) as usize;
        if is_last && rest > 0 { rest } else { size }
    }

    /// Where symbols of a block are read from.
    fn source(
        &mut self,
        block: BlockId,
        has_block: bool,
        receiver: &Receiver,
        objects: &BTreeMap<Toi, Arc<OpenObject>>,
        directory: &Path,
    ) -> Option<ReadFrom> {
        if self.named.contains(&block.toi) {
            let new = || {
                Arc::new(CommittedObject {
                    manifest: Arc::clone(&self.manifest),
                    directory: directory.to_owned(),
                    plans: Arc::clone(&self.plans),
                    encoder: Default::default(),
                })
            };
            let object = self.committed.entry(block.toi).or_insert_with(new);
            return Some(ReadFrom::Files(Arc::clone(object)));
        }
        let object = Arc::clone(objects.get(&block.toi)?);
        Some(match has_block {
            true => ReadFrom::Whole { object, plans: Arc::clone(&self.plans) },
            false => ReadFrom::Part { object, repair: receiver.repair_in_slots(block) },
        })
    }
}
