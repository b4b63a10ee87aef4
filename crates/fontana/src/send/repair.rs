//! Repair on demand: which blocks receivers may request symbols of.

use super::options::SendOptions;
use crate::content::Content;
use crate::error::{Error, SetupError};
use fontana_fec::{EncodingId, Sbn};
use fontana_proto::report::RepairConfig;
use fontana_proto::{BlockId, RepairBy, SendMode};
use std::collections::BTreeMap;

/// Largest number of blocks that a roll call says are being sent: half of a packet.
const PENDING_CAPACITY: usize = 48;
/// Receivers whose requests are remembered, 50 bytes each.
const MAX_RECEIVERS: usize = 1 << 16;

/// Most source symbols of a block of Reed-Solomon. It has as many repair symbols, for receivers
/// that lose half; those of a longer block would repeat while receivers still lack some.
const MOST_OF_REED_SOLOMON: u32 = 128;

/// What the session repairs: on demand, or, without an end, where its receivers can request.
pub(super) fn repair_config(
    options: &SendOptions,
    content: &Content,
    channels: u8,
    packets_per_second: f64,
) -> Result<RepairBy, Error> {
    let collection = options.format.fontana().and_then(|format| format.reports.as_ref());
    let is_endless =
        options.mode == SendMode::OnDemand && collection.is_some_and(|reports| reports.rests);
    if options.mode != SendMode::RepairOnDemand && !is_endless {
        return Ok(RepairBy::Nothing);
    }
    let blocks = match repairable(content, channels) {
        Err(_) if is_endless => return Ok(RepairBy::Nothing),
        Ok(blocks) => blocks,
        Err(needs) => return Err(SetupError::RepairOnDemand { needs }.into()),
    };
    let Some(reports) = collection else {
        let needs = "reports, with which receivers request";
        return Err(SetupError::RepairOnDemand { needs }.into());
    };
    Ok(RepairBy::Rounds(Box::new(RepairConfig {
        blocks,
        symbols_per_second: packets_per_second,
        pending_capacity: PENDING_CAPACITY,
        max_receivers: MAX_RECEIVERS,
        max_age: reports.max_age,
        trusts_unauthenticated: reports.trust_unauthenticated,
        has_signers: reports.has_signers(),
    })))
}

/// The source symbols of each block, or what the content needs so that receivers can request.
fn repairable(content: &Content, channels: u8) -> Result<BTreeMap<BlockId, u32>, &'static str> {
    if channels != 1 {
        return Err("a session on one channel");
    }
    let mut blocks = BTreeMap::new();
    for object in &content.objects {
        let layout = object.source.layout();
        let code = layout.oti().scheme.profile();
        if !code.is_rateless && !code.is_mds {
            return Err("RaptorQ, Raptor, LT, Reed-Solomon, or no code (not Tornado)");
        }
        let repeats_soon = !code.is_rateless && code.encoding_id != EncodingId::NO_CODE;
        for sbn in (0..layout.block_count()).map(Sbn) {
            let k = layout.source_symbols(sbn).unwrap_or(0);
            if repeats_soon && k > MOST_OF_REED_SOLOMON {
                return Err("blocks of at most 128 symbols with Reed-Solomon");
            }
            blocks.insert(BlockId { toi: object.toi, sbn }, k);
        }
    }
    Ok(blocks)
}
