//! Raptor (FEC Encoding ID 1): sessions of senders for 3GPP's services, which put several symbols
//! into a packet, and Fontana's own.

use super::fontana_side::{
    Files, FontanaReceiver, Losing, Received, addressing, air, assert_same, noise,
};
use super::handmade::Session;
use super::peer::TSI;
use fontana::Outcome;
use fontana::wire::{HeaderFields, Toi, Tsi, emit_payload_id};
use fontana_fec::codes::raptor::Raptor;
use fontana_fec::simple::encode;
use fontana_fec::{EncodingId, Esi, FecScheme, Sbn};
use std::time::Duration;

const LENGTH: usize = 100_000;
const SYMBOL: usize = 140;
/// Encoding symbols that the sender sends: 715 source symbols and 15 % more.
const SYMBOLS: u32 = 822;

/// A table as such senders write it: the attributes of the instance are those of other files, and
/// the numbers of Raptor are in attributes of 3GPP TS 26.346.
fn table() -> Vec<u8> {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<FDT-Instance Expires="4000000000" Complete="true" FEC-OTI-FEC-Encoding-ID="1"
    FEC-OTI-Maximum-Source-Block-Length="64" FEC-OTI-Encoding-Symbol-Length="1436"
    xmlns:mbms2007="urn:3GPP:metadata:2007:MBMS:FLUTE:FDT">
    <File TOI="1" Content-Location="k100.bin" Content-Length="{LENGTH}"
        Transfer-Length="{LENGTH}" Content-Type="application/octet-stream"
        FEC-OTI-FEC-Encoding-ID="1" FEC-OTI-Encoding-Symbol-Length="{SYMBOL}"
        FEC-OTI-Symbol-Alignment-Parameter="4" FEC-OTI-Number-Of-Source-Blocks="1"
        FEC-OTI-Number-Of-Sub-Blocks="1">
        <mbms2007:Cache-Control><mbms2007:Expires>4000000000</mbms2007:Expires></mbms2007:Cache-Control>
    </File>
</FDT-Instance>"#
    )
    .into_bytes()
}

/// The packets of the file, with up to `per_packet` symbols each.
fn packets(bytes: &[u8], per_packet: u32) -> Vec<Vec<u8>> {
    let code = Raptor { source_blocks: 1, sub_blocks: 1, alignment: 4 };
    let symbols = encode(FecScheme::Raptor(code), bytes, SYMBOL as u16).unwrap();
    let fields = HeaderFields { codepoint: 1, ..HeaderFields::new(Tsi(TSI), Some(Toi(1))) };
    (0..SYMBOLS)
        .step_by(per_packet as usize)
        .map(|first| {
            let mut packet = Vec::new();
            fields.emit(&mut packet);
            emit_payload_id(EncodingId::RAPTOR, Sbn(0), Esi(first), &mut packet);
            for esi in (first..SYMBOLS.min(first + per_packet)).map(Esi) {
                let mut symbol = [0; SYMBOL];
                symbols.write_symbol(esi, &mut symbol);
                packet.extend(symbol);
            }
            packet
        })
        .collect()
}

fn receive(session: Session) -> Received {
    let _air = air();
    let addressing = addressing();
    let receiver = FontanaReceiver::join(&addressing, |options| options);
    let _sender = session.repeat(&addressing);
    receiver.run()
}

/// A sender repeats the same packets, some of which are always lost.
#[test]
fn several_symbols_in_a_packet_complete_the_file_from_all_packets_and_from_90_per_cent() {
    let bytes = noise(LENGTH, 1);
    let expected = Files::from([("k100.bin".to_owned(), bytes.clone())]);
    for permille in [0, 100] {
        let mut losing = Losing::permille(permille);
        let packets = packets(&bytes, 10).into_iter().filter(|_| !losing.loses_one());
        let session = Session::default().table_instance(1, &table(), None).packets(packets);
        let received = receive(session);
        assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
        assert_same(&received.files, &expected);
    }
}

/// They wait for the table in the memory of early symbols.
#[test]
fn several_symbols_in_a_packet_before_the_table_count_too() {
    let bytes = noise(LENGTH, 2);
    let mut packets = packets(&bytes, 10);
    let after = packets.split_off(80);
    let session = Session::default()
        .packets(packets)
        .wait(Duration::from_millis(300))
        .table_instance(1, &table(), None)
        .packets(after)
        .wait(Duration::from_secs(1));
    let received = receive(session);
    assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
    let packets = received.summary.progress.stats.session_packets;
    assert!(packets < 100, "the first 83 packets of the file suffice: {packets}");
    assert_same(&received.files, &Files::from([("k100.bin".to_owned(), bytes)]));
}
