//! The announcement of a session's symbols by signed digests.

use super::options::SendOptions;
use crate::error::{Error, SetupError};
use crate::system::{generate_key, milliseconds_since_1970};
use fontana_fec::Esi;
use fontana_proto::{BlockId, DigestSigner};
use fontana_wire::{DigestKey, GroupNumber, HeadRecords, InstanceId, SymbolDigest};

/// Least symbols of a planning window: more than there are between the two copies of a list.
pub(super) const LEAST_WINDOW: usize = 2_048;

/// The key with which a run of the sender signs lists of digests, if the options ask for them. It
/// is new for each run: the publisher's key signs the head that has it, and nothing else. A mirror
/// has the key of its certificate.
pub(super) fn draw_signer(
    options: &SendOptions,
    instance: InstanceId,
    symbol_size: u16,
) -> Result<Option<DigestSigner>, Error> {
    if !options.symbol_digests() {
        return Ok(None);
    }
    let signer = options.signer().ok_or(SetupError::UnsignedDigests)?;
    if options.addressing.channels.count() > 1 || options.layering().is_some() {
        return Err(SetupError::OneChannelOnly("a session with symbol digests").into());
    }
    let key = match options.certificate() {
        Some(_) => signer.clone(),
        None => generate_key()?,
    };
    let first_group = GroupNumber(milliseconds_since_1970() << RUN_GROUP_BITS);
    Ok(Some(DigestSigner { instance, key, max_bytes: symbol_size, first_group }))
}

/// Groups in a millisecond that no sender exceeds: a later run of a mirror has higher numbers.
const RUN_GROUP_BITS: u32 = 8;

/// The records of a head, with the key of the lists.
pub(super) fn records_with(signer: Option<&DigestSigner>, records: HeadRecords) -> HeadRecords {
    let with_key = signer.and_then(|signer| DigestKey(signer.key.public_key()).add_to(&records));
    with_key.unwrap_or(records)
}

/// The digests of symbols of a block that follow each other in `symbols`.
pub(super) fn of_symbols(
    block: BlockId,
    esis: &[Esi],
    symbols: &[u8],
    symbol_size: usize,
) -> Vec<SymbolDigest> {
    let symbols = symbols.chunks_exact(symbol_size.max(1));
    let digest = |(&esi, symbol)| SymbolDigest::of(block.toi, block.sbn, esi, symbol);
    esis.iter().zip(symbols).map(digest).collect()
}
