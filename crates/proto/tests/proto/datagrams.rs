//! Digests of the first datagrams of sessions, so that the wire format changes only on purpose.
//!
//! A different digest means that receivers of an earlier version may not parse these datagrams, or
//! that a sender uses another order. Then `docs/wire.md` and this table change together.

use crate::support::world::{Content, PACKET_BYTES, SenderDriver, Setup, T, TSI, hash, sender};
use fontana_fec::codes::lt::{Lt, LtCode};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::codes::tornado::{Tornado, TornadoCode};
use fontana_fec::{FecScheme, Oti};
use fontana_proto::{
    ControlObject, Fcast, Instant, ObjectOrder, Pacer, SendMode, SendObject, Sender, SenderConfig,
    SymbolOrganization, TransmissionSchedule, presets,
};
use fontana_wire::{
    CongestionControl, Fdt, FdtExtension, FdtFile, Hash, LayerRates, NtpSeconds, SecretKey, Toi,
};
use std::time::Duration;

/// Datagrams of each session that the digest covers.
const DATAGRAMS: usize = 2_000;

/// Two objects of a few blocks, whose last symbols are short.
const SHAPES: [(usize, u8); 2] = [(100_001, 3), (30_007, 1)];

fn digest(mut driver: SenderDriver) -> Hash {
    let mut bytes = Vec::new();
    let (mut count, mut now) = (0, Instant::ZERO);
    while count < DATAGRAMS {
        for (channel, datagram) in driver.poll_channels(now).into_iter().take(DATAGRAMS - count) {
            bytes.push(channel.0);
            bytes.extend((datagram.len() as u16).to_be_bytes());
            bytes.extend(datagram);
            count += 1;
        }
        now = now + Duration::from_millis(1);
    }
    hash(&bytes)
}

fn of(content: &Content, setup: &Setup, signer: Option<&SecretKey>) -> Hash {
    digest(SenderDriver::new(sender(content, setup, signer), content))
}

fn raptorq() -> Content {
    Content::new(&SHAPES, 3)
}

fn coded(scheme: &dyn Fn(u8, u32) -> FecScheme) -> Hash {
    of(&Content::coded(&SHAPES, 3, 1, scheme), &Setup::default(), None)
}

fn controlled(congestion: CongestionControl) -> Hash {
    let setup = Setup { rate: 400_000, congestion: Some(congestion), ..Setup::default() };
    of(&raptorq(), &setup, None)
}

fn block_length(blocks: u8, k: u32) -> u32 {
    k.div_ceil(blocks.into())
}

/// A session without a head: a file delivery table, or EXT_FTI in every packet.
fn plain(table: bool) -> Hash {
    let content = Content::coded(&SHAPES, 3, 1, &|blocks, k| {
        FecScheme::NoCode(NoCode { max_source_block_length: block_length(blocks, k) })
    });
    let objects = content.objects.iter();
    let objects = objects.map(|(&toi, &(layout, _))| SendObject { toi, layout, source_pass: true });
    let file = |object: &SendObject| FdtFile {
        toi: object.toi,
        content_location: format!("file {}", object.toi),
        transfer_length: Some(object.layout.oti().transfer_length),
        oti: Some(object.layout.oti()),
        ..FdtFile::default()
    };
    let objects: Vec<_> = objects.collect();
    let control = table.then(|| {
        let files = objects.iter().map(file).collect();
        let bytes = Fdt { expires: NtpSeconds(3_000_000_000), files, ..Fdt::default() }
            .emit(fontana_wire::FluteVersion::V2);
        let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 64 });
        let oti = Oti { transfer_length: bytes.len() as u64, symbol_size: 128, scheme };
        let fdt = FdtExtension { version: 2, instance_id: 1 };
        ControlObject::new(Toi::FDT, oti, &bytes, Some(fdt), 2).unwrap()
    });
    let sender = Sender::new(SenderConfig {
        tsi: TSI,
        objects,
        first: Vec::new(),
        control: control.into_iter().collect(),
        mode: SendMode::OnDemand,
        schedule: TransmissionSchedule::EVEN,
        rate_bytes_per_second: 1_000_000,
        channels: None,
        packet_overhead: 28,
        peak_window: Pacer::PEAK_WINDOW,
        round_symbols: 500,
        opening_permille: 0,
        pass_start: 0,
        sequence_in_cci: false,
        omit_padding: false,
        fti_in_packets: !table,
        seal: None,
        seed: 1,
    });
    digest(SenderDriver::new(sender, &content))
}

fn digests() -> Vec<(&'static str, Hash)> {
    let layers = || LayerRates::geometric(100_000, 512, 4).unwrap();
    let key = SecretKey::from_seed(&[7; 32]);
    let fcast = TransmissionSchedule::Fcast(Fcast {
        organization: SymbolOrganization::Segments,
        object_order: ObjectOrder::Random,
        stretch_factor: 2,
        anticipated_layers: 0,
    });
    vec![
        ("raptorq", of(&raptorq(), &Setup::default(), None)),
        ("signed", of(&raptorq(), &Setup::default(), Some(&key))),
        (
            "mirror",
            of(&raptorq(), &Setup { source_pass: false, seed: 9, ..Setup::default() }, None),
        ),
        ("layers", of(&raptorq(), &Setup::default().layered(4), None)),
        ("fcast order", of(&raptorq(), &Setup { schedule: fcast, ..Setup::default() }, None)),
        ("rlc", controlled(CongestionControl::Rlc(presets::rlc(layers())))),
        ("flid-sl", controlled(CongestionControl::FlidSl(presets::flid_sl(layers())))),
        (
            "webrc",
            controlled(CongestionControl::Webrc(
                presets::webrc_fast(400_000, PACKET_BYTES).unwrap(),
            )),
        ),
        (
            "no code",
            coded(&|blocks, k| {
                FecScheme::NoCode(NoCode { max_source_block_length: block_length(blocks, k) })
            }),
        ),
        (
            "tornado",
            coded(&|blocks, k| {
                FecScheme::Tornado(Tornado {
                    max_source_block_length: block_length(blocks, k),
                    code: TornadoCode::Z,
                })
            }),
        ),
        (
            "lt",
            coded(&|blocks, k| {
                let max_source_block_length = block_length(blocks, k);
                FecScheme::Lt(Lt {
                    max_source_block_length,
                    code: LtCode::fast(max_source_block_length, 0),
                })
            }),
        ),
        (
            "reed-solomon",
            coded(&|_, _| {
                FecScheme::ReedSolomon(ReedSolomon {
                    code: ReedSolomonCode::Rfc5510,
                    max_source_block_length: 100,
                    max_encoding_symbols: 200,
                })
            }),
        ),
        ("flute", plain(true)),
        ("fti in packets", plain(false)),
    ]
}

#[test]
fn the_first_datagrams_of_every_kind_of_session_do_not_change() {
    assert_eq!(T, 64, "the digests are of sessions with these symbols");
    let found = digests();
    let text: Vec<_> = found.iter().map(|(name, hash)| format!("{name}: {hash}")).collect();
    assert_eq!(text, EXPECTED, "\nfound:\n{}", text.join("\n"));
}

const EXPECTED: &[&str] = &[
    "raptorq: 830abce345be3149a33b418bbff0a17e8b31f3f2c50407a6bdd0a3e3b2926850",
    "signed: 86305e7f44a021b537e487db64c1cd138e4747e000d179b66ed40db85e9170f8",
    "mirror: f28559d6bc6827fb36b2d9adcbf99dd512ffb9e8572a811305c8a218b995e66d",
    "layers: 214373677d296e348fc5c6a9d5a0c149b07034c478dc8ee88304660cda227fc5",
    "fcast order: 81762090220a2e9aecb54c476c35f063cd7234dbd634c06ea06136a5a2c3307f",
    "rlc: 09f6ec648e619a7ea0fe83ca6fff37a570c97bbe4ed939ee67fbf21f636f8829",
    "flid-sl: d438a7c6bd3ffde69841ecfc21f5546f31c5f5dd9d113ba5b614c19501521f6d",
    "webrc: e412640445c67fc767d9a899810dff1876f5a5b8bf68787fa3497c57f3bd730b",
    "no code: e2cd42882ffeff3c5b00d75e77355826392937b87203bbe42696afdb859c35a6",
    "tornado: 40aab89327f4ebdef3877da16b0d3ec71c1a057aae2ec6c06e45a71045e4e7bc",
    "lt: 817e66e20cc79e9d5f5c78c5e86f27171b5fb7248e0c139ed4100af92901b33d",
    "reed-solomon: b6040020d6e67c6f551bf2bea6ef893003ac9f5c219a596519f50e3b86d03d31",
    "flute: 1ab01b4ded59594d8efb2c07e67c7405d494d0d0beb606909c39cec1d8f2806e",
    "fti in packets: e43df8f8f10713790eb16a997530be70ce7e9f110f3c3ccc43f04618fb07436c",
];
