//! Senders of plain FLUTE as they live: restarted with another file, with a wrong bit, with
//! updates, at any packet. What has a name on the disk is always one of the files that were sent.

use super::disk::{Crash, SimulatedDisk};
use super::run::{Damage, End, Heard, ReceiverRun};
use super::world::Transmission;
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptor::Raptor;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::{EncodingId, Esi, FecScheme, Oti, Sbn};
use fontana_proto::memory::{MemoryContent, append_symbol};
use fontana_proto::{BlockId, MetadataMode, SplitMix64};
use fontana_testing::noise;
use fontana_wire::{
    Fdt, FdtExtension, FdtFile, FdtMd5, FluteVersion, HeaderFields, NtpSeconds, Toi, Tsi,
    emit_payload_id,
};
use md5::{Digest, Md5};
use std::path::Path;
use std::sync::Arc;

/// Seeds of each property in the gate; more with `DISK_SEEDS`.
const SEEDS: u64 = 60;
const SYMBOL: u16 = 64;
const TSI: Tsi = Tsi(7);

fn schemes() -> [FecScheme; 4] {
    [
        FecScheme::NoCode(NoCode { max_source_block_length: 8 }),
        FecScheme::ReedSolomon(ReedSolomon {
            code: ReedSolomonCode::Rfc5510,
            max_source_block_length: 8,
            max_encoding_symbols: 10,
        }),
        FecScheme::Raptor(Raptor { source_blocks: 1, sub_blocks: 1, alignment: 4 }),
        FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 }),
    ]
}

/// A file that is sent.
#[derive(Clone)]
struct Sent {
    toi: u128,
    name: &'static str,
    bytes: Vec<u8>,
    scheme: FecScheme,
    has_md5: bool,
}

impl Sent {
    fn draw(random: &mut SplitMix64, toi: u128, name: &'static str, scheme: FecScheme) -> Self {
        let length = usize::from(SYMBOL) * 4 + random.below(1_500) as usize;
        Self { toi, name, bytes: noise(length, random.next_u64()), scheme, has_md5: true }
    }

    fn oti(&self) -> Oti {
        let transfer_length = self.bytes.len() as u64;
        Oti { transfer_length, symbol_size: SYMBOL, scheme: self.scheme }
    }

    /// The source symbols of the file, and two repair symbols of each block.
    fn packets(&self) -> Vec<Vec<u8>> {
        let (oti, toi) = (self.oti(), Toi(self.toi));
        let layout = oti.layout().unwrap();
        let mut content = MemoryContent::default();
        content.insert(toi, layout, self.bytes.clone());
        let codepoint = oti.scheme.profile().encoding_id.0;
        let fields = HeaderFields { codepoint, ..HeaderFields::new(TSI, Some(toi)) };
        let mut packets = Vec::new();
        for sbn in (0..layout.block_count()).map(Sbn) {
            let encoded = content.encode(BlockId { toi, sbn }).unwrap();
            let k = layout.source_symbols(sbn).unwrap();
            for esi in (0..k + 2).map(Esi).filter(|&esi| layout.contains(sbn, esi)) {
                let mut packet = Vec::new();
                fields.emit(&mut packet);
                emit_payload_id(EncodingId(codepoint), sbn, esi, &mut packet);
                append_symbol(&encoded, esi, &mut packet);
                packets.push(packet);
            }
        }
        packets
    }
}

/// The packets of a pass of a carousel: a table of one packet, and the file.
fn pass(instance_id: u32, file: &Sent, complete: bool) -> Vec<Vec<u8>> {
    let md5 = FdtMd5::Digest(Md5::digest(&file.bytes).into());
    let entry = FdtFile {
        toi: Toi(file.toi),
        content_location: file.name.to_owned(),
        content_length: Some(file.bytes.len() as u64),
        content_md5: file.has_md5.then_some(md5),
        oti: Some(file.oti()),
        ..FdtFile::default()
    };
    let expires = NtpSeconds::from_unix_seconds(1_900_000_000);
    let table = Fdt { expires, complete, files: vec![entry] }.emit(FluteVersion::V1);
    let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
    let oti = Oti { transfer_length: table.len() as u64, symbol_size: 1400, scheme };
    let fields = HeaderFields {
        fdt: Some(FdtExtension { version: 1, instance_id }),
        fti: Some(oti),
        ..HeaderFields::new(TSI, Some(Toi::FDT))
    };
    let mut packet = Vec::new();
    fields.emit(&mut packet);
    emit_payload_id(EncodingId::NO_CODE, Sbn(0), Esi(0), &mut packet);
    packet.extend(table);
    std::iter::once(packet).chain(file.packets()).collect()
}

/// Each file that has a name is one of those that were sent under it.
fn check(directory: &Path, sent: &[Sent]) -> Result<(), String> {
    for name in ["a", "b"] {
        let Ok(bytes) = std::fs::read(directory.join(name)) else { continue };
        if !sent.iter().any(|file| file.name == name && file.bytes == bytes) {
            return Err(format!("{name} is a mixture"));
        }
    }
    Ok(())
}

/// Plays what a sender sends, first to a receiver that may crash, then to another one. `repeated`:
/// the packets of the last pass, which has the last file.
fn play(
    random: &mut SplitMix64,
    packets: &[Vec<u8>],
    repeated: usize,
    sent: &[Sent],
) -> Result<(), String> {
    let directory = tempfile::tempdir().unwrap();
    let mut damage = Damage::default();
    for is_last in [false, true] {
        let disk = Arc::new(SimulatedDisk::new(directory.path(), 1));
        let crash = Crash { after: random.below(60).into(), tears: random.below(2) == 0 };
        disk.begin_run((!is_last && random.below(2) == 0).then_some(crash), None);
        let packets = packets.to_vec();
        let heard = |_| Heard {
            senders: vec![Transmission::Changing { packets, repeated, next: 0 }],
            loss: 0,
            forging: 0,
            metadata: MetadataMode::Flute,
            known_manifest: None,
            overwrite: is_last,
        };
        let run = ReceiverRun::of(heard, &mut damage, &disk, directory.path(), random.next_u64());
        let end = run.run()?;
        check(directory.path(), sent)?;
        if end == End::Complete {
            let last = sent.last().unwrap();
            let found = std::fs::read(directory.path().join(last.name)).unwrap_or_default();
            let is_last_version = found == last.bytes;
            return if is_last_version { Ok(()) } else { Err("not the last file".to_owned()) };
        }
        if end != End::Crashed {
            return Err(format!("{end:?}"));
        }
        disk.end_run();
    }
    Err("it does not complete".to_owned())
}

/// Runs a property for each seed.
fn each_seed(property: impl Fn(&mut SplitMix64) -> Result<(), String>, stream: u64) {
    let number = |variable: &str| std::env::var(variable).ok()?.parse::<u64>().ok();
    let seeds = match number("DISK_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("DISK_SEEDS").map_or(SEEDS, |seeds| seeds.min(2_000)),
    };
    for seed in seeds {
        if let Err(what) = property(&mut SplitMix64::new(seed, stream)) {
            panic!("{what}: DISK_SEED={seed}");
        }
    }
}

#[test]
fn a_sender_that_is_restarted_with_another_file_leaves_no_mixture() {
    each_seed(
        |random| {
            let scheme = schemes()[random.below(4) as usize];
            let mut first = Sent::draw(random, 1, "a", scheme);
            let name = if random.below(2) == 0 { "a" } else { "b" };
            let mut second = Sent::draw(random, 1, name, scheme);
            // Without MD5, the names or the lengths show it.
            let is_shown = name == "b" || first.bytes.len() != second.bytes.len();
            let has_md5 = !is_shown || random.below(2) == 0;
            (first.has_md5, second.has_md5) = (has_md5, has_md5);
            let before = pass(1, &first, false);
            let count = 1 + random.below(2 * before.len() as u32) as usize;
            let after = pass(1 + random.below(2), &second, true);
            let packets: Vec<_> =
                before.iter().cycle().take(count).chain(&after).cloned().collect();
            play(random, &packets, after.len(), &[first, second])
        },
        11,
    );
}

#[test]
fn a_wrong_bit_in_any_packet_loses_no_file() {
    each_seed(
        |random| {
            let scheme = schemes()[random.below(4) as usize];
            let file = Sent::draw(random, 1, "a", scheme);
            let right = pass(1, &file, true);
            let mut wrong = right.clone();
            // Nothing shows that a table is wrong before another one comes.
            let at = 1 + random.below(wrong.len() as u32 - 1) as usize;
            let bit = random.below(8 * wrong[at].len() as u32) as usize;
            wrong[at][bit / 8] ^= 1 << (bit % 8);
            let packets = [wrong, right.clone()].concat();
            play(random, &packets, right.len(), &[file])
        },
        12,
    );
}

#[test]
fn the_last_of_three_versions_stays() {
    each_seed(
        |random| {
            let scheme = schemes()[random.below(4) as usize];
            let versions: Vec<_> =
                (1..=3).map(|toi| Sent::draw(random, toi, "a", scheme)).collect();
            let mut packets = Vec::new();
            let mut repeated = 0;
            for (version, instance) in versions.iter().zip(1..) {
                let pass = pass(instance, version, instance == 3);
                let count = match instance {
                    3 => pass.len(),
                    // More than one version a second is refused.
                    _ => 1_500 + random.below(pass.len() as u32) as usize,
                };
                repeated = pass.len();
                packets.extend(pass.into_iter().cycle().take(count));
            }
            play(random, &packets, repeated, &versions)
        },
        13,
    );
}
