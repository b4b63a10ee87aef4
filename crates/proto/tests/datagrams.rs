//! Digests of the first datagrams of sessions, so that the wire format changes only on purpose.
//!
//! A different digest means that receivers of an earlier version may not parse these datagrams, or
//! that a sender uses another order. Then `docs/wire.md` and this table change together.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/world.rs"]
mod world;

use fontana_fec::codes::lt::{Lt, LtCode};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::codes::tornado::{Tornado, TornadoCode};
use fontana_fec::{FecScheme, Oti};
use fontana_proto::{
    ControlObject, Fcast, Instant, ObjectOrder, SendMode, SendObject, Sender, SenderConfig,
    SymbolOrganization, TransmissionSchedule, presets,
};
use fontana_wire::{
    CongestionControl, Fdt, FdtExtension, FdtFile, Hash, LayerRates, NtpSeconds, SecretKey, Toi,
};
use std::time::Duration;
use world::{Content, PACKET_BYTES, SenderDriver, Setup, T, TSI, hash, sender};

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
        round_symbols: 500,
        opening_permille: 0,
        sequence_in_cci: false,
        omit_padding: false,
        fti_in_packets: !table,
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
    "raptorq: 6a3326836d213ef032c2698f6e5d97743a21cac803dec3e6e755b30fc1d3da91",
    "signed: 5a63e2e3c6f6747efd73172d2abc7252d199d97dc3f72c9edff04cd2deb880fb",
    "mirror: 59c60c3538728ac63c6125ab6b958a510f2733e0791945ad1dcf6f1b114132e9",
    "layers: 22c2abff6a3a7f7927ff34467a8b699baddeb459c78d18b392794a9b6ff1fa5e",
    "fcast order: 987495a4111e01ff97727129f1c26b8a65ab808e5bce7131e6da03fe254d5111",
    "rlc: 1c6420b09563afcdeb47c68479d012a39089d855b0f958a36b024f35a5dd1d4a",
    "flid-sl: da599b78375d02a07476eeb9d8258681ab2ded3be002a59feed834ce0c56c7c0",
    "webrc: bf7856b918ccc7093ecab4447c249636943349780663fcb25c9a854985cae29e",
    "no code: 671893b0d8204ef0b354b34fa36f52d140084b48d04965249433ccbe854c3559",
    "tornado: ac71f03f00d5729be737f0d78bc9452d2d82821ea5bd9fb47737e937944440d7",
    "lt: c98dc4cb885b1a2954614d2497aa70ce8ab2ad0c9850fb2ecb5202e22af640ed",
    "reed-solomon: 461dd02a3b90d85dbd2d400f62b46f2a0cc32dff2b0176b819b972ade481e4d4",
    "flute: a44bdbf1ccca76bbedf85cbd58c36c9c351c249708c0061ec2dd9810fd3a97fb",
    "fti in packets: e43df8f8f10713790eb16a997530be70ce7e9f110f3c3ccc43f04618fb07436c",
];
