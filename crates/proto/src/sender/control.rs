//! Control objects: repeated in their own rhythm, coded if they do not fit one packet.

use crate::channel::ChannelId;
use crate::random::SplitMix64;
use crate::schedule::{SymbolStream, likely_symbols};
use crate::time::Instant;
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{Esi, FecScheme, Intermediate, Oti, OtiError, Padding, PlanCache, Sbn, Scratch};
use fontana_wire::{
    Cci, CongestionControl, ContentEncoding, ContentKind, FdtExtension, HeadRecords, HeaderFields,
    InstanceId, ObjectRef, SealField, SecretKey, SessionHead, Toi, Tsi, emit_payload_id,
    manifest_hash, stream_index_hash,
};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// An object that a session repeats beside its content: session head, manifest or file delivery
/// table. One source block; every packet carries its OTI (EXT_FTI). Or empty files.
#[derive(Clone)]
pub struct ControlObject {
    toi: Toi,
    oti: Oti,
    source_symbols: u32,
    encoder: Option<Arc<Intermediate>>,
    fdt: Option<FdtExtension>,
    /// Compression of a file delivery table, which its packets name (EXT_CENC).
    content_encoding: Option<ContentEncoding>,
    intervals: u32,
    /// The last source symbol is sent without its padding.
    omits_padding: bool,
    /// Files that take turns; none for an object that has bytes.
    empty_files: Arc<[Toi]>,
}

/// Why bytes cannot be a control object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The parameters describe no object.
    #[error(transparent)]
    Oti(#[from] OtiError),
    /// A control object has one source block of at least one symbol.
    #[error("a control object of {blocks} source blocks, it must have one")]
    Blocks {
        /// Blocks it would have.
        blocks: u32,
    },
    /// The OTI speaks of another length.
    #[error("{actual} bytes, the OTI says {expected}")]
    Length {
        /// Bytes given.
        actual: usize,
        /// Transfer length of the OTI.
        expected: u64,
    },
}

impl ControlObject {
    /// `bytes` as an object, to be sent once in so many control intervals (see
    /// [`Sender`](crate::Sender)); `fdt` marks an instance of a file delivery table.
    ///
    /// # Errors
    /// [`ControlError`] if `oti` and `bytes` do not make an object of one source block.
    pub fn new(
        toi: Toi,
        oti: Oti,
        bytes: &[u8],
        fdt: Option<FdtExtension>,
        intervals: u32,
    ) -> Result<Self, ControlError> {
        let layout = oti.layout()?;
        if layout.block_count() != 1 {
            return Err(ControlError::Blocks { blocks: layout.block_count() });
        }
        if bytes.len() as u64 != oti.transfer_length {
            let expected = oti.transfer_length;
            return Err(ControlError::Length { actual: bytes.len(), expected });
        }
        let source_symbols = layout.max_source_symbols();
        let size = usize::from(oti.symbol_size);
        let plan = PlanCache::new(1).source_plan(oti.scheme, source_symbols).ok();
        let encoder = plan.and_then(|plan| {
            let load = |esi: Esi, out: &mut [u8]| {
                let pieces = layout.symbol_pieces(Sbn(0), esi);
                for piece in pieces {
                    let from = piece.in_object.start as usize..piece.in_object.end as usize;
                    let source = bytes.get(from).ok_or(())?;
                    let start = piece.in_symbol.start;
                    let target = out.get_mut(start..start + source.len()).ok_or(())?;
                    target.copy_from_slice(source);
                }
                Ok::<(), ()>(())
            };
            plan.execute(size, load, Scratch::default()).ok().map(Arc::new)
        });
        let omits_padding = oti.scheme.profile().padding == Padding::Omitted;
        Ok(Self {
            toi,
            oti,
            source_symbols,
            encoder,
            fdt,
            content_encoding: None,
            intervals,
            omits_padding,
            empty_files: Arc::default(),
        })
    }

    /// The object, a file delivery table whose bytes have this encoding.
    pub fn encoded(self, encoding: ContentEncoding) -> Self {
        // Without an encoding the extension must be absent (RFC 6726, section 3.4.3).
        let content_encoding = (encoding != ContentEncoding::Null).then_some(encoding);
        Self { content_encoding, ..self }
    }

    /// The object whose last source symbol is sent without its padding, if its code allows that.
    pub fn without_padding(self) -> Self {
        Self { omits_padding: self.oti.scheme.profile().padding != Padding::Sent, ..self }
    }

    /// The empty files of a plain FLUTE session, whose table says the same `oti`: packets without a
    /// symbol, because there are receivers that make a file only when they hear of its object.
    pub fn empty_files(tois: &[Toi], oti: Oti, intervals: u32) -> Self {
        Self {
            toi: Toi::FDT,
            oti: Oti { transfer_length: 0, ..oti },
            source_symbols: tois.len() as u32,
            encoder: None,
            fdt: None,
            content_encoding: None,
            intervals,
            omits_padding: true,
            empty_files: tois.into(),
        }
    }

    /// A head, padded to one symbol.
    ///
    /// # Errors
    /// [`ControlError`] if the symbol size is one that no symbol can have, or the head is longer.
    pub fn head(
        head: &SessionHead,
        symbol_size: u16,
        signer: Option<&SecretKey>,
        intervals: u32,
    ) -> Result<Self, ControlError> {
        let mut bytes = head.emit(signer);
        bytes.resize(bytes.len().max(symbol_size.into()), 0);
        Self::new(Toi::HEAD, control_oti(bytes.len(), symbol_size), &bytes, None, intervals)
    }

    pub(super) fn symbol_size(&self) -> u16 {
        self.oti.symbol_size
    }
}

impl std::fmt::Debug for ControlObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlObject").field("toi", &self.toi).field("oti", &self.oti).finish()
    }
}

/// The parameters of a control object that only Fontana reads: one block, and no code if one symbol
/// holds it.
pub fn control_oti(length: usize, symbol_size: u16) -> Oti {
    let scheme = if length <= usize::from(symbol_size) {
        FecScheme::NoCode(NoCode { max_source_block_length: 1 })
    } else {
        FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 })
    };
    Oti { transfer_length: length as u64, symbol_size, scheme }
}

/// What the head of a session says, and the manifest or stream index that it names.
#[derive(Clone, Debug)]
pub struct Announcement<'a> {
    /// This run of the sender.
    pub instance: InstanceId,
    /// Version of the manifest or of the index.
    pub version: u64,
    /// Which of the two `body` is.
    pub kind: ContentKind,
    /// The manifest or the index, as it is sent.
    pub body: &'a [u8],
    /// Time at which the head expires, in unix seconds; `None`: never.
    pub expires_unix_seconds: Option<NonZeroU64>,
    /// The cap on all channels together; `None`: not said.
    pub rate_bytes_per_second: Option<NonZeroU64>,
    /// How receivers choose channels.
    pub congestion_control: CongestionControl,
    /// Optional fields of the head.
    pub records: HeadRecords,
}

/// Control intervals from one symbol of the head, and of the manifest or index, to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnouncementIntervals {
    /// Of the head.
    pub head: u32,
    /// Of what it names.
    pub body: u32,
}

impl Default for AnnouncementIntervals {
    /// Those of sessions whose receivers may join at any time.
    fn default() -> Self {
        Self { head: 2, body: 4 }
    }
}

impl<'a> Announcement<'a> {
    /// A manifest in its first version, at a fixed rate that is not said.
    pub fn of_manifest(instance: InstanceId, manifest: &'a [u8]) -> Self {
        Self {
            instance,
            version: 1,
            kind: ContentKind::Manifest,
            body: manifest,
            expires_unix_seconds: None,
            rate_bytes_per_second: None,
            congestion_control: CongestionControl::FixedRate,
            records: HeadRecords::default(),
        }
    }

    /// The head, if control objects have symbols of this size.
    pub fn head(&self, symbol_size: u16) -> SessionHead {
        let hash = match self.kind {
            ContentKind::Manifest => manifest_hash(self.body),
            ContentKind::StreamIndex => stream_index_hash(self.body),
        };
        let oti = control_oti(self.body.len(), symbol_size);
        SessionHead {
            instance: self.instance,
            manifest_version: self.version,
            kind: self.kind,
            manifest: ObjectRef { toi: Toi::MANIFEST.0 as u32, oti, hash },
            expires_unix_seconds: self.expires_unix_seconds,
            rate_bytes_per_second: self.rate_bytes_per_second,
            congestion_control: self.congestion_control.clone(),
            records: self.records.clone(),
        }
    }

    /// The head, padded to one symbol, and what it names.
    ///
    /// # Errors
    /// [`ControlError`] if the symbol size is one that no symbol can have, or the head is longer.
    pub fn control_objects(
        &self,
        symbol_size: u16,
        signer: Option<&SecretKey>,
        intervals: AnnouncementIntervals,
    ) -> Result<[ControlObject; 2], ControlError> {
        let head = self.head(symbol_size);
        let oti = control_oti(self.body.len(), symbol_size);
        Ok([
            ControlObject::head(&head, symbol_size, signer, intervals.head)?,
            ControlObject::new(Toi::MANIFEST, oti, self.body, None, intervals.body)?,
        ])
    }
}

/// A late receiver keeps at most about so many packets of content until it knows what they are:
/// the control objects should have passed once by then.
const EARLY_PACKETS: u64 = 4096;
/// A long control object takes no more than one packet in so many (3 %), or its share of all that a
/// receiver needs: who joins late would else hear the content several times before it knows the
/// names of many small files.
const MIN_PERIOD: u64 = 33;
/// And no more than one packet in so many in any case.
const LEAST_PERIOD: u64 = 4;
/// Symbols of a long object at the start after which the head comes again. A receiver uses no
/// symbol of a manifest before it has the head: one that joins a little later would hear most of
/// the manifest in vain.
const HEAD_IN_BURST: u64 = 64;

/// A control object in its rhythm.
#[derive(Debug)]
pub(super) struct ControlCarousel {
    object: ControlObject,
    stream: SymbolStream,
    sent: u64,
    /// Number of symbols that are sent without a pause at the start.
    burst: u64,
    /// Packets of a channel from one symbol to the next, at least.
    period: u64,
    /// Makes the rhythm uneven.
    random: SplitMix64,
    /// For each channel, the number of its packet that the next symbol should be.
    due: Vec<u64>,
    /// When a symbol was last sent on channel 0.
    on_base_at: Option<Instant>,
    /// Makes the next one there come a little earlier or later: less than [`UNEVEN_ON_BASE`].
    uneven_on_base: u32,
}

/// Of several channels, the slowest receivers hear only channel 0, which may be much slower than
/// the session. A control object comes by there as a whole in this time, if it has no more than
/// [`BASE_SYMBOLS`] and that takes no more than one packet in [`BASE_GAP`]; one of its symbols does
/// even if that takes every second packet. On WEBRC's base channel of one packet a second (RFC
/// 3738) every second packet is a control packet: a receiver that hears nothing else waits four to
/// six seconds for the head.
const BASE_PERIOD: Duration = Duration::from_secs(2);
/// 21 kB: a manifest of a few hundred blocks.
const BASE_SYMBOLS: u32 = 16;
/// 13 % of a slow channel is what a quick start may cost.
const BASE_GAP: u64 = 8;
/// There, times are up to an eighth shorter, in so many steps: on fast channels, of less than a
/// packet.
const UNEVEN_ON_BASE: u32 = 64;
/// And one control packet in so many comes a packet later: on the slowest, an eighth is less than
/// that.
const LATER_ON_BASE: u32 = 4;

impl ControlCarousel {
    pub(super) fn new(
        object: ControlObject,
        interval: u64,
        channel_count: usize,
        random: &mut SplitMix64,
    ) -> Self {
        let k = object.source_symbols;
        let relaxed = interval * u64::from(object.intervals.max(1));
        let period = relaxed.min((EARLY_PACKETS / u64::from(k.max(1))).max(MIN_PERIOD));
        let stream = SymbolStream::new(object.oti.scheme, k, random);
        let due = vec![0; channel_count.max(1)];
        // Of its own: two objects that are uneven in the same way are even together.
        let random = SplitMix64::new(random.clone().next_u64(), object.toi.0 as u64);
        Self {
            object,
            stream,
            sent: 0,
            burst: k.into(),
            period,
            random,
            due,
            on_base_at: None,
            uneven_on_base: 1,
        }
    }

    /// The carousel beside content of so many source symbols.
    pub(super) fn beside(self, content_symbols: u64) -> Self {
        let k = u64::from(self.object.source_symbols.max(1));
        if EARLY_PACKETS / k >= MIN_PERIOD {
            return self;
        }
        // A quarter more than its share: so it is complete before the content is, and there is time
        // to open the files. It costs each receiver a quarter of the manifest, at most.
        let share = k.saturating_add(content_symbols).saturating_mul(4) / k.saturating_mul(5);
        let share = share.clamp(LEAST_PERIOD, MIN_PERIOD);
        Self { period: self.period.min(share), ..self }
    }

    /// The carousel that starts with as many symbols as a receiver that loses one packet in four
    /// most likely needs. Receivers of a new version read its head and its manifest, and no file
    /// delivery table.
    pub(super) fn redundant(mut self) -> Self {
        let is_read = self.object.fdt.is_none() && self.object.empty_files.is_empty();
        if is_read {
            self.burst = likely_symbols(self.object.oti.scheme, self.object.source_symbols);
        }
        self
    }

    /// Sends this object from now on, if it has the TOI and transmission information of the present
    /// one.
    pub(super) fn renew(&mut self, object: &ControlObject) -> bool {
        let is_same = self.object.toi == object.toi && self.object.oti == object.oti;
        if is_same {
            self.object = object.clone();
        }
        is_same
    }

    pub(super) fn is_head(&self) -> bool {
        self.object.toi == Toi::HEAD
    }

    /// Symbols that were sent so far.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Symbols that a receiver needs, at least: as many as there are empty files.
    pub(super) fn source_symbols(&self) -> u64 {
        self.object.source_symbols.into()
    }

    /// The object whose turn it is on a channel when `packets` have been sent there: at first every
    /// symbol of each in their order, on whatever channel, with a head now and then, afterwards the
    /// one that is most overdue.
    pub(super) fn pick(all: &[Self], channel: ChannelId, packets: u64) -> Option<usize> {
        let due = Self::most_overdue(all, channel, packets)?;
        let (first, object) = (all.first()?, all.get(due)?);
        let lacks_head = first.object.toi == Toi::HEAD
            && object.sent < object.burst
            && first.sent.saturating_mul(HEAD_IN_BURST) <= object.sent;
        Some(if lacks_head { 0 } else { due })
    }

    fn most_overdue(all: &[Self], channel: ChannelId, packets: u64) -> Option<usize> {
        all.iter()
            .enumerate()
            .filter_map(|(index, carousel)| {
                Some((*carousel.due.get(usize::from(channel.0))?, index))
            })
            .filter(|&(due, _)| due <= packets)
            .min()
            .map(|(_, index)| index)
    }

    /// The object that channel 0 has been without for longest, if that is too long; `gap` packets
    /// of content have been sent there since the last control packet.
    pub(super) fn missing_on_base(all: &[Self], now: Instant, gap: u64) -> Option<usize> {
        let is_missing = |carousel: &Self| {
            let period = BASE_PERIOD - BASE_PERIOD / 8 * carousel.uneven_on_base / UNEVEN_ON_BASE;
            carousel.on_base_at.is_none_or(|at| {
                let symbols = carousel.object.source_symbols.clamp(1, BASE_SYMBOLS);
                let soon = gap + 1 >= BASE_GAP && at + period / symbols <= now;
                soon || at + period <= now
            })
        };
        all.iter()
            .enumerate()
            .filter(|(_, carousel)| is_missing(carousel))
            .min_by_key(|(index, carousel)| (carousel.on_base_at, *index))
            .filter(|(_, carousel)| gap > u64::from(carousel.uneven_on_base % LATER_ON_BASE == 0))
            .map(|(index, _)| index)
    }

    /// Appends the packet with the next symbol.
    pub(super) fn emit(&self, tsi: Tsi, cci: Cci, seal: Option<SealField>, out: &mut Vec<u8>) {
        let ControlObject { toi, oti, ref encoder, fdt, ref empty_files, .. } = self.object;
        let encoding_id = oti.scheme.profile().encoding_id;
        let turn = self.sent.checked_rem(empty_files.len() as u64).unwrap_or(0) as usize;
        let empty_file = empty_files.get(turn).copied();
        let fields = HeaderFields {
            cci,
            codepoint: encoding_id.0,
            fdt,
            content_encoding: self.object.content_encoding,
            // Not for an empty file: a deployed receiver (docs/errata.md) that learns from EXT_FTI
            // that a file is complete before its table has come never makes it.
            fti: empty_file.is_none().then_some(oti),
            seal,
            ..HeaderFields::new(tsi, Some(empty_file.unwrap_or(toi)))
        };
        fields.emit(out);
        if empty_file.is_some() {
            return emit_payload_id(encoding_id, Sbn(0), Esi(0), out);
        }
        let esi = self.stream.esi(self.sent);
        emit_payload_id(encoding_id, Sbn(0), esi, out);
        let at = out.len();
        let size = usize::from(oti.symbol_size);
        out.resize(at + size, 0);
        if let (Some(encoder), Some(symbol)) = (encoder, out.get_mut(at..)) {
            encoder.write_symbol(esi, symbol);
        }
        if self.object.omits_padding && esi.0 < self.object.source_symbols {
            let left = oti.transfer_length.saturating_sub(u64::from(esi.0) * size as u64);
            out.truncate(at + size.min(left as usize));
        }
    }

    /// The packet was sent; it was the channel's number `packets`.
    ///
    /// The next one is not exactly so many later. A full queue drops packets of an even stream in a
    /// rhythm of its own: one that shares a factor with this one would take every control packet,
    /// or none.
    pub(super) fn advance(&mut self, now: Instant, channel: ChannelId, packets: u64) {
        self.sent += 1;
        if self.sent >= self.burst
            && let Some(due) = self.due.get_mut(usize::from(channel.0))
        {
            let uneven = self.period + u64::from(self.random.below(self.period as u32 / 8 + 1));
            *due = packets + uneven;
        }
        if channel == ChannelId::BASE {
            self.on_base_at = Some(now);
            self.uneven_on_base = self.random.below(UNEVEN_ON_BASE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::EncodingId;
    use fontana_fec::FecScheme;
    use fontana_fec::codes::no_code::NoCode;
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_wire::Packet;

    fn carousel(object: ControlObject) -> ControlCarousel {
        ControlCarousel::new(object, 100, 1, &mut SplitMix64::new(1, 1))
    }

    #[test]
    fn an_empty_file_is_a_packet_without_symbol_and_without_transmission_information() {
        let no_code = FecScheme::NoCode(NoCode { max_source_block_length: 64 });
        let raptorq = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
        for scheme in [no_code, raptorq] {
            let oti = Oti { transfer_length: 0, symbol_size: 1000, scheme };
            let tois = [Toi(7), Toi(8), Toi(9)];
            let mut carousel = carousel(ControlObject::empty_files(&tois, oti, 1));
            for toi in tois.into_iter().chain(tois) {
                let mut bytes = Vec::new();
                carousel.emit(Tsi(1), Cci::default(), None, &mut bytes);
                carousel.advance(Instant::ZERO, ChannelId::BASE, 0);
                let packet = Packet::parse(&bytes).unwrap();
                assert_eq!(packet.header.toi, Some(toi));
                assert_eq!(packet.header.codepoint, scheme.profile().encoding_id.0);
                assert_eq!(packet.header.extensions.fti(), None);
                let payload = packet.payload(EncodingId(packet.header.codepoint)).unwrap().unwrap();
                assert_eq!((payload.sbn, payload.esi, payload.symbol), (Sbn(0), Esi(0), &[][..]));
            }
        }
    }

    #[test]
    fn a_queue_that_drops_every_second_packet_does_not_take_all_control_packets() {
        let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
        let oti = Oti { transfer_length: 100, symbol_size: 100, scheme };
        let object = ControlObject::new(Toi::HEAD, oti, &[1; 100], None, 2).unwrap();
        let mut all = [carousel(object)];
        let mut by_parity = [0, 0];
        for packet in 0..20_000 {
            if let Some(which) = ControlCarousel::pick(&all, ChannelId::BASE, packet) {
                all[which].advance(Instant::ZERO, ChannelId::BASE, packet);
                by_parity[packet as usize % 2] += 1;
            }
        }
        assert!(by_parity.iter().all(|&count| count > 20), "{by_parity:?}");
    }

    #[test]
    fn nor_does_one_in_front_of_the_lowest_of_several_channels() {
        let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
        let oti = Oti { transfer_length: 100, symbol_size: 100, scheme };
        let mut random = SplitMix64::new(1, 1);
        let mut object = |toi| {
            let object = ControlObject::new(toi, oti, &[1; 100], None, 2).unwrap();
            ControlCarousel::new(object, 100, 1, &mut random)
        };
        // An even number of packets in two seconds.
        for per_second in [1, 35] {
            let mut all = [object(Toi::HEAD), object(Toi::MANIFEST)];
            let (mut by_parity, mut gap) = ([[0, 0]; 2], 0);
            for packet in 0..2_000 {
                let now = Instant::ZERO + Duration::from_secs(packet) / per_second;
                match ControlCarousel::missing_on_base(&all, now, gap) {
                    None => gap += 1,
                    Some(which) => {
                        all[which].advance(now, ChannelId::BASE, packet);
                        by_parity[which][packet as usize % 2] += 1;
                        gap = 0;
                    }
                }
            }
            assert!(by_parity.as_flattened().iter().all(|&count| count > 4), "{by_parity:?}");
        }
    }

    #[test]
    fn the_head_comes_again_while_a_long_manifest_is_sent_at_the_start() {
        let head = ControlObject::new(Toi::HEAD, control_oti(100, 1_000), &[1; 100], None, 2);
        let oti = control_oti(540_000, 1_000);
        let manifest = ControlObject::new(Toi::MANIFEST, oti, &vec![1; 540_000], None, 1);
        let mut all = [carousel(head.unwrap()), carousel(manifest.unwrap())];
        let sent: Vec<_> = (0..549_u64)
            .map(|packet| {
                let which = ControlCarousel::pick(&all, ChannelId::BASE, packet).unwrap();
                all[which].advance(Instant::ZERO, ChannelId::BASE, packet);
                which
            })
            .collect();
        let heads: Vec<_> = (0..sent.len()).filter(|&at| sent[at] == 0).collect();
        assert_eq!(heads, [0, 65, 130, 195, 260, 325, 390, 455, 520]);
        assert_eq!(all[1].sent(), 540, "all of the manifest");
    }

    /// A quarter more than that: beside four and 20 times as much content, and beside much more.
    #[test]
    fn a_manifest_has_its_share_of_what_a_receiver_needs() {
        let oti = control_oti(540_000, 1_000);
        for (k, content, period) in [(540, 2_160, 4), (540, 10_935, 17), (540, 100_000, 33)] {
            let bytes = vec![1; k * 1_000];
            let object = ControlObject::new(Toi::MANIFEST, oti, &bytes, None, 1).unwrap();
            let mut all = [carousel(object).beside(content)];
            let mut control = 0;
            let packets = 20_000;
            for packet in 0..packets {
                if let Some(which) = ControlCarousel::pick(&all, ChannelId::BASE, packet) {
                    all[which].advance(Instant::ZERO, ChannelId::BASE, packet);
                    control += u64::from(packet >= k as u64);
                }
            }
            let share = packets as f64 / control as f64 / period as f64;
            assert!((0.9..1.3).contains(&share), "{content}: {share}");
        }
    }

    #[test]
    fn however_many_empty_files_there_are_they_leave_room_for_content() {
        let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
        let oti = Oti { transfer_length: 0, symbol_size: 1000, scheme };
        for count in [1, 10_000] {
            let tois: Vec<_> = (1..=count).map(Toi::from).collect();
            let mut all = [carousel(ControlObject::empty_files(&tois, oti, 1))];
            let mut control = 0;
            let packets = 100 * u64::from(count);
            for packet in 0..packets {
                if let Some(which) = ControlCarousel::pick(&all, ChannelId::BASE, packet) {
                    all[which].advance(Instant::ZERO, ChannelId::BASE, packet);
                    control += 1;
                }
            }
            // All of them at first, then one in 33 at most.
            assert!((count..=count + (packets / MIN_PERIOD) as u32).contains(&control));
        }
    }
}
