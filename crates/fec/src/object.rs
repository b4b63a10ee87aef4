//! Objects in memory as RaptorQ packets (RFC 6330), and back.
//!
//! An [`Encoder`] makes packets of bytes, as many as wanted. Any few more packets than the object
//! has symbols give a [`Decoder`] the bytes again. It knows nothing but the 12 bytes of
//! [`Encoder::oti`]. Both formats are those of the RFC, and of the crate `raptorq`.
//!
//! ```
//! use fontana_fec::object::{Decoder, Encoder};
//!
//! let data = vec![7; 10_000];
//! let encoder = Encoder::new(&data, 1_400)?;
//! let mut decoder = Decoder::new(&encoder.oti())?;
//! // Every third packet is lost; there are 8 of the data, and 10 others.
//! let received = encoder.packets(10).enumerate().filter(|(index, _)| index % 3 > 0);
//! let object = received.map(|(_, packet)| decoder.push(&packet)).find_map(Result::transpose);
//! assert_eq!(object.transpose()?, Some(data.clone()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! For other codes, objects larger than memory, and several threads: [`PlanCache`] and
//! [`ObjectLayout`].

use crate::bytes::stripes::Scratch;
use crate::codes::raptorq::{self, RaptorQ};
use crate::decode::{EsiError, IdDecoder, Novelty, Progress};
use crate::ids::{Esi, Sbn};
use crate::layout::ObjectLayout;
use crate::limits::OtiError;
use crate::oti::Oti;
use crate::plan::{Intermediate, PlanCache};
use crate::scheme::FecScheme;
use crate::simple::decode_block;
use crate::sync::OnceLock;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;

/// Bytes of an OTI: the Common FEC OTI and the Scheme-Specific FEC OTI (RFC 6330, sections 3.3.2
/// and 3.3.3).
pub const OTI_SIZE: usize = 12;

/// Bytes of a FEC Payload ID, with which a packet begins (RFC 6330, section 3.2).
pub const PAYLOAD_ID_SIZE: usize = 4;

/// Source symbols of a block, unless the object needs longer ones: planning is fast, and the block
/// fits the processor's caches if symbols fit Ethernet frames.
const BLOCK_SYMBOLS: u64 = 8_192;

/// Why an object cannot be encoded, or an OTI is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// No packets are made of an empty object.
    #[error("the object has 0 bytes, must have at least 1")]
    Empty,
    /// The OTI is invalid, or the object is too long for symbols of this size.
    #[error(transparent)]
    Oti(#[from] OtiError),
}

/// Why a packet is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The size is not that of a FEC Payload ID and one or more symbols.
    #[error("packet has {actual} bytes, must have {PAYLOAD_ID_SIZE} and whole symbols of {symbol}")]
    Size {
        /// Bytes of the packet.
        actual: usize,
        /// Bytes of a symbol.
        symbol: u16,
    },
    /// The object has no such block.
    #[error("source block {block} does not exist, the object has {blocks}", block = .block.0)]
    Block {
        /// The block of the packet.
        block: Sbn,
        /// Blocks of the object, numbered from 0.
        blocks: u32,
    },
    /// The block has no such symbol.
    #[error(transparent)]
    Esi(#[from] EsiError),
}

/// Makes packets of an object.
pub struct Encoder<'d> {
    data: &'d [u8],
    layout: ObjectLayout,
    plans: PlanCache,
    /// For each block, what repair symbols are made of: computed when the first one is requested.
    blocks: Vec<OnceLock<Intermediate>>,
}

impl fmt::Debug for Encoder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("layout", &self.layout).finish_non_exhaustive()
    }
}

impl<'d> Encoder<'d> {
    /// An encoder with symbols of `symbol_size` bytes; a packet is 4 bytes longer.
    ///
    /// Blocks have at most 8 192 symbols. Those of objects of more than 255 such blocks are longer,
    /// up to 56 403. Symbols are not divided into sub-blocks.
    ///
    /// # Errors
    /// [`ObjectError`] if `data` is empty, or has more symbols than 255 blocks.
    pub fn new(data: &'d [u8], symbol_size: u16) -> Result<Self, ObjectError> {
        let transfer_length = data.len() as u64;
        let symbols = transfer_length.div_ceil(symbol_size.max(1).into());
        let blocks = symbols.div_ceil(BLOCK_SYMBOLS).clamp(1, raptorq::MAX_BLOCKS.into());
        let code = RaptorQ { source_blocks: blocks as u8, sub_blocks: 1, alignment: 1 };
        let layout = checked(transfer_length, symbol_size, code)?;
        let blocks = (0..layout.block_count()).map(|_| OnceLock::new()).collect();
        // Blocks have at most two lengths.
        Ok(Self { data, layout, plans: PlanCache::new(2), blocks })
    }

    /// What a [`Decoder`] must know: the OTI in the form of RFC 6330.
    pub fn oti(&self) -> [u8; OTI_SIZE] {
        write_oti(&self.layout.oti())
    }

    /// The geometry of the object: its blocks, and their source symbols.
    pub fn layout(&self) -> &ObjectLayout {
        &self.layout
    }

    /// The packets of the source symbols of all blocks, then `repair` packets of each block.
    pub fn packets(&self, repair: u32) -> impl Iterator<Item = Vec<u8>> + '_ {
        let blocks = || {
            let k = |sbn| self.layout.source_symbols(sbn).unwrap_or(0);
            (0..self.layout.block_count()).map(Sbn).map(move |sbn| (sbn, k(sbn)))
        };
        let source = blocks().map(|(sbn, k)| (sbn, 0..k));
        let repairs = blocks().map(move |(sbn, k)| (sbn, k..k.saturating_add(repair)));
        let ids =
            source.chain(repairs).flat_map(|(sbn, esis)| esis.map(move |esi| (sbn, Esi(esi))));
        ids.map_while(|(sbn, esi)| self.packet(sbn, esi))
    }

    /// The packet of encoding symbol `esi` of block `sbn`: the FEC Payload ID, and the symbol.
    /// `None` if the object has no such symbol. The first repair symbol of a block takes the time
    /// to encode it.
    pub fn packet(&self, sbn: Sbn, esi: Esi) -> Option<Vec<u8>> {
        let size = usize::from(self.layout.oti().symbol_size);
        let k = self.layout.source_symbols(sbn)?;
        if !self.layout.contains(sbn, esi) {
            return None;
        }
        let mut packet = vec![0; PAYLOAD_ID_SIZE + size];
        let (id, symbol) = packet.split_at_mut(PAYLOAD_ID_SIZE);
        // Blocks have 8 bits, and symbols 24.
        id.copy_from_slice(&((sbn.0 << 24) | esi.0).to_be_bytes());
        if esi.0 < k {
            self.read(sbn, esi, symbol);
        } else {
            self.block(sbn, k)?.write_symbol(esi, symbol);
        }
        Some(packet)
    }

    /// The intermediate symbols of block `sbn` of `k` source symbols.
    fn block(&self, sbn: Sbn, k: u32) -> Option<&Intermediate> {
        let oti = self.layout.oti();
        let block = self.blocks.get(sbn.0 as usize)?;
        Some(block.get_or_init(|| {
            let read = |esi: Esi, out: &mut [u8]| {
                self.read(sbn, esi, out);
                Ok::<(), Infallible>(())
            };
            let Ok(plan) = self.plans.source_plan(oti.scheme, k) else {
                unreachable!("the layout has checked the length of its blocks")
            };
            let Ok(block) = plan.execute(oti.symbol_size.into(), read, Scratch::default());
            block
        }))
    }

    /// Writes a source symbol over zeros.
    fn read(&self, sbn: Sbn, esi: Esi, out: &mut [u8]) {
        for piece in self.layout.symbol_pieces(sbn, esi) {
            let from = &self.data[piece.in_object.start as usize..piece.in_object.end as usize];
            out[piece.in_symbol][..from.len()].copy_from_slice(from);
        }
    }
}

/// Recovers an object from packets.
///
/// Its OTI and the packets may come from an attacker. It allocates memory for the symbols that have
/// arrived, and for each block that has a symbol at most some bytes per source symbol. Wrong
/// symbols give a wrong object: the caller checks a digest.
pub struct Decoder {
    layout: ObjectLayout,
    plans: PlanCache,
    blocks: BTreeMap<Sbn, Block>,
    /// Blocks that are complete.
    complete: u32,
}

enum Block {
    Receiving {
        decoder: Box<dyn IdDecoder>,
        symbols: BTreeMap<Esi, Vec<u8>>,
    },
    /// The source symbols, one after another.
    Complete(Vec<u8>),
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Decoder");
        out.field("layout", &self.layout).field("complete", &self.complete).finish_non_exhaustive()
    }
}

impl Decoder {
    /// A decoder of the object with this OTI.
    ///
    /// # Errors
    /// [`ObjectError`] if the OTI is not one of RFC 6330, or is that of an empty object.
    pub fn new(oti: &[u8; OTI_SIZE]) -> Result<Self, ObjectError> {
        let &[f0, f1, f2, f3, f4, _reserved, t0, t1, source_blocks, n0, n1, alignment] = oti;
        let transfer_length = u64::from_be_bytes([0, 0, 0, f0, f1, f2, f3, f4]);
        let sub_blocks = u16::from_be_bytes([n0, n1]);
        let code = RaptorQ { source_blocks, sub_blocks, alignment };
        let layout = checked(transfer_length, u16::from_be_bytes([t0, t1]), code)?;
        let (plans, blocks) = (PlanCache::new(2), BTreeMap::new());
        Ok(Self { layout, plans, blocks, complete: 0 })
    }

    /// The geometry of the object: its length, and its blocks.
    pub fn layout(&self) -> &ObjectLayout {
        &self.layout
    }

    /// Takes a packet, and returns the object once, when it is complete. Packets may come in any
    /// order, and more than once. A packet may hold several symbols with consecutive ESIs, and the
    /// padding of the last source symbol may be left out.
    ///
    /// # Errors
    /// [`PacketError`] if the object has no such packet. The symbols before the wrong one are used.
    pub fn push(&mut self, packet: &[u8]) -> Result<Option<Vec<u8>>, PacketError> {
        let symbol = self.layout.oti().symbol_size;
        let wrong_size = PacketError::Size { actual: packet.len(), symbol };
        let (id, symbols) = packet.split_first_chunk().ok_or(wrong_size)?;
        let id = u32::from_be_bytes(*id);
        let (sbn, first) = (Sbn(id >> 24), id & 0xFF_FFFF);
        let blocks = self.layout.block_count();
        let k = self.layout.source_symbols(sbn);
        let k = k.ok_or(PacketError::Block { block: sbn, blocks })?;
        if symbols.is_empty() {
            return Err(wrong_size);
        }
        let was_complete = self.complete == blocks;
        for (esi, symbol) in (first..).map(Esi).zip(symbols.chunks(self.symbol_size())) {
            let unpadded = self.layout.unpadded_symbol_size(sbn, esi);
            if symbol.len() < self.symbol_size() && symbol.len() != usize::from(unpadded) {
                return Err(wrong_size);
            }
            self.push_symbol(sbn, k, esi, symbol)?;
        }
        Ok((self.complete == blocks && !was_complete).then(|| self.take_object()))
    }

    fn symbol_size(&self) -> usize {
        self.layout.oti().symbol_size.into()
    }

    fn push_symbol(
        &mut self,
        sbn: Sbn,
        k: u32,
        esi: Esi,
        symbol: &[u8],
    ) -> Result<(), PacketError> {
        let (scheme, size) = (self.layout.oti().scheme, self.symbol_size());
        let block = self.blocks.entry(sbn).or_insert_with(|| {
            let Ok(decoder) = self.plans.decoder(scheme, k) else {
                unreachable!("the layout has checked the length of its blocks")
            };
            Block::Receiving { decoder, symbols: BTreeMap::new() }
        });
        let Block::Receiving { decoder, symbols } = block else { return Ok(()) };
        if decoder.push(esi)? == Novelty::Duplicate {
            return Ok(());
        }
        symbols.insert(esi, symbol.to_vec());
        if decoder.symbols_wanted() > 0 {
            return Ok(());
        }
        let Progress::Solved(plan) = decoder.solve(scheme.block_profile(k).work) else {
            return Ok(());
        };
        let received = |esi| symbols.get(&esi).map(Vec::as_slice);
        if let Ok(bytes) = decode_block(&plan, size, received) {
            *block = Block::Complete(bytes);
            self.complete += 1;
        }
        Ok(())
    }

    /// The bytes of all blocks.
    fn take_object(&mut self) -> Vec<u8> {
        let size = self.symbol_size();
        let mut object = vec![0; self.layout.oti().transfer_length as usize];
        for (&sbn, block) in &mut self.blocks {
            let Block::Complete(block) = block else { continue };
            for (esi, symbol) in (0..).map(Esi).zip(core::mem::take(block).chunks_exact(size)) {
                for piece in self.layout.symbol_pieces(sbn, esi) {
                    let to = piece.in_object.start as usize..piece.in_object.end as usize;
                    let from = &symbol[piece.in_symbol][..to.len()];
                    object[to].copy_from_slice(from);
                }
            }
        }
        object
    }
}

/// The checked geometry of an object that is not empty.
fn checked(
    transfer_length: u64,
    symbol_size: u16,
    code: RaptorQ,
) -> Result<ObjectLayout, ObjectError> {
    if transfer_length == 0 {
        return Err(ObjectError::Empty);
    }
    Ok(Oti { transfer_length, symbol_size, scheme: FecScheme::RaptorQ(code) }.layout()?)
}

fn write_oti(oti: &Oti) -> [u8; OTI_SIZE] {
    let [_, _, _, f0, f1, f2, f3, f4] = oti.transfer_length.to_be_bytes();
    let [t0, t1] = oti.symbol_size.to_be_bytes();
    let parameters = oti.scheme.parameters();
    let mut bytes = [f0, f1, f2, f3, f4, 0, t0, t1, 0, 0, 0, 0];
    bytes[8..].copy_from_slice(parameters.information.bytes());
    bytes
}
