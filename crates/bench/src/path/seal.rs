//! A group key: tags are written and checked, and packets encrypted and decrypted.

use super::content::{PathContent, SYMBOL_SIZE};
use super::row::{Meter, PathRow};
use super::stage::Stage;
use fontana::seal::{GroupKey, PacketOpener, PacketSealer};
use fontana_fec::EncodingId;
use fontana_wire::{
    HeaderFields, SealField, SealId, SealMode, SessionSeal, Toi, Tsi, emit_payload_id,
};

/// The run of the sender.
const ID: SealId = SealId([7; 8]);

pub(super) fn measure(content: &PathContent) -> Vec<PathRow> {
    let mut rows = with_mode(content, SealMode::Authenticated, ["tag", "check tag"]);
    rows.extend(with_mode(content, SealMode::Encrypted, ["encrypt", "decrypt"]));
    rows
}

fn with_mode(
    content: &PathContent,
    mode: SealMode,
    [seal, open]: [&'static str; 2],
) -> Vec<PathRow> {
    let key = GroupKey::from_bytes([3; 32]);
    let (sealer, mut opener) = (PacketSealer::new(&key, ID), PacketOpener::new(key));
    let (mut sealing, mut opening, mut count) = (Meter::default(), Meter::default(), 0);
    for run in content.source_runs() {
        let mut datagrams = Vec::new();
        let symbols = content.source(run).chunks(SYMBOL_SIZE.into());
        for (symbol, esi) in symbols.zip(run.esis()) {
            let session = SessionSeal { id: ID, mode };
            let seal = Some(SealField { session, channel: 0, count });
            let fields = HeaderFields { seal, ..HeaderFields::new(Tsi(7), Some(Toi(1))) };
            fields.emit(&mut datagrams);
            emit_payload_id(EncodingId::RAPTORQ, run.sbn, esi, &mut datagrams);
            datagrams.extend_from_slice(symbol);
            count += 1;
        }
        let size = datagrams.len() / run.count as usize;
        sealing.measure(|| datagrams.chunks_mut(size).for_each(|packet| sealer.seal(packet)));
        let open_all = || datagrams.chunks_mut(size).all(|packet| opener.open(0, packet));
        assert!(opening.measure(open_all), "every packet is of the group");
    }
    vec![
        PathRow::new(Stage::Seal, seal, count, sealing.nanos),
        PathRow::new(Stage::Seal, open, count, opening.nanos),
    ]
}
