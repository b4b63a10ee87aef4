//! What senders emit from numbers that they are given: it is read back unchanged, or refused.

use super::patched;
use crate::{documentation, head, manifest};
use fontana_fec::{EncodingId, Oti};
use fontana_wire::{
    AnnouncedSchedule, Cci, CongestionControl, Extension, FdtExtension, FlidSl, Hash, HeaderFields,
    IdWidths, InstanceId, LayerRates, LayerSymbols, Manifest, ManifestLimits, NtpSeconds, Packet,
    Rlc, SealField, SealId, SealMode, SecretKey, SessionHead, SessionSeal, ShelfIndex, SyncSpacing,
    TimeExtension, Toi, Tsi, UnverifiedHead, Webrc, emit_payload_id, manifest_hash,
};

/// A congestion control with these parameters, if they are in range.
fn control(kind: u8, layers: &[u32], [a, b, c, d]: [u16; 4]) -> Option<CongestionControl> {
    let rates = match layers.first() {
        Some(&base) if kind & 8 != 0 => LayerRates::geometric(base, a, b as u8),
        _ => LayerRates::listed(layers.to_vec()),
    };
    let layers = || rates.clone().inspect_err(|error| _ = error.to_string()).ok();
    let control = match kind % 5 {
        0 => CongestionControl::FixedRate,
        1 => CongestionControl::FixedLayers(layers()?),
        2 => CongestionControl::Rlc(Rlc {
            layers: layers()?,
            cycle_milliseconds: a,
            spacing: if b.is_multiple_of(2) { SyncSpacing::Nested } else { SyncSpacing::Mcl },
            burst_milliseconds: c,
            deaf_milliseconds: d,
        }),
        3 => CongestionControl::FlidSl(FlidSl { layers: layers()?, slot_milliseconds: a }),
        _ => CongestionControl::Webrc(Webrc {
            rate_bytes_per_second: u32::from(a) << 8,
            packet_bytes: b,
            base_packets_per_second: c,
            slot_milliseconds: d,
            decay_256ths: 128 + (a % 128) as u8,
            wave_slots: (b % 40) as u8,
            quiet_slots: (c % 40) as u8,
        }),
    };
    control.checked().ok()
}

fn schedule(kind: u8, numbers: [u16; 4]) -> AnnouncedSchedule {
    match kind % 4 {
        0 => AnnouncedSchedule::Cumulative,
        1 => AnnouncedSchedule::Random,
        kind => AnnouncedSchedule::Fcast {
            layers: if kind == 2 { LayerSymbols::All } else { LayerSymbols::Segment },
            one_in: u32::from(numbers[0]) % 4,
            stretch_factor: numbers[1] as u8,
            anticipated_layers: numbers[2] as u8 % 3,
        },
    }
}

#[test]
fn head_with_any_congestion_control() {
    let key = SecretKey::from_seed(&[7; 32]);
    type Input = (u8, Vec<u32>, [u16; 4], (u16, u16, Vec<u8>));
    bolero::check!().with_type::<Input>().for_each(|(kind, layers, numbers, patch)| {
        let layers: Vec<u32> = layers.iter().take(66).map(|&rate| rate >> 7).collect();
        let Some(control) = control(*kind, &layers, *numbers) else { return };
        let channels = control.channel_count();
        assert!((1..=64).contains(&channels) && !control.name().is_empty());
        assert!(control.parameter_size() <= CongestionControl::MAX_PARAMETER_SIZE);
        if let CongestionControl::Webrc(webrc) = &control {
            assert_eq!(webrc.base_modulus() % u32::from(webrc.base_packets_per_slot()), 0);
        }
        if let CongestionControl::FixedLayers(layers) = &control {
            assert_eq!(layers.cumulative().last(), Some(layers.total()));
        }
        let schedule = schedule(kind >> 4, *numbers);
        assert!(!schedule.to_string().contains(char::is_control));
        let records = schedule.records();
        let head = SessionHead { congestion_control: control, records, ..head::sample() };
        let good = head.emit(Some(&key));
        let parsed = UnverifiedHead::parse(&good).unwrap().verify(&key.public_key()).unwrap();
        assert_eq!(parsed, head);
        assert_eq!(AnnouncedSchedule::of(&parsed.records), Some(schedule));
        let (at, cut, patch) = patch;
        let damaged = patched(&good, *at, *cut, patch);
        match UnverifiedHead::parse(&damaged) {
            Ok(head) => {
                let head = head.without_verification();
                let _ = AnnouncedSchedule::of(&head.records);
                assert!(!format!("{} {:?}", head.instance, head.instance).is_empty());
            }
            Err(error) => assert!(!error.to_string().contains(char::is_control)),
        }
    });
}

/// An object of each code with an encoding id of its own.
fn oti(kind: u8, length: u64, symbol_size: u16, parameters: &[u8]) -> Option<Oti> {
    use fontana_fec::FecScheme;
    use fontana_fec::codes::{no_code::NoCode, raptor::Raptor, raptorq::RaptorQ};
    let byte = |at: usize| parameters.get(at).copied().unwrap_or(1);
    let scheme = match kind % 3 {
        0 => FecScheme::NoCode(NoCode { max_source_block_length: u32::from(byte(0)) + 1 }),
        1 => {
            FecScheme::Raptor(Raptor { source_blocks: byte(0).into(), sub_blocks: 1, alignment: 4 })
        }
        _ => FecScheme::RaptorQ(RaptorQ { source_blocks: byte(0), sub_blocks: 1, alignment: 4 }),
    };
    let oti = Oti { transfer_length: length, symbol_size, scheme };
    oti.layout().is_ok().then_some(oti)
}

#[test]
fn header_of_any_fields() {
    type Input = ((u64, u128, u32), (u8, u8, u8), (u64, u16, Vec<u8>), [u32; 4]);
    bolero::check!().with_type::<Input>().for_each(|(ids, kinds, object, words)| {
        let &(tsi, toi, cci) = ids;
        let &(flags, shift, codepoint) = kinds;
        let flag = |bit: u8| flags >> bit & 1 == 1;
        let shift = u32::from(shift);
        let (length, symbol_size, parameters) = object;
        let [a, b, c, d] = *words;
        let fields = HeaderFields {
            tsi: Tsi(tsi >> (16 + shift % 48)),
            toi: (!flag(0)).then_some(Toi(toi >> (16 + shift % 112))),
            widths: if flag(1) { IdWidths::Narrowest } else { IdWidths::Fixed32 },
            cci: Cci::from_u32(cci),
            codepoint,
            close_session: flag(2),
            close_object: flag(3),
            fdt: flag(4).then_some(FdtExtension { version: (a % 17) as u8, instance_id: b >> 11 }),
            time: flag(5).then_some(TimeExtension {
                sender_current_time: flag(2).then_some(u64::from(a) << 32 | u64::from(b)),
                expected_residual_time_seconds: flag(3).then_some(c),
                session_last_changed: flag(6).then_some(NtpSeconds(d)),
            }),
            fti: flag(6).then(|| oti(codepoint, length >> 16, *symbol_size, parameters)).flatten(),
            seal: flag(7).then_some(SealField {
                session: SessionSeal {
                    id: SealId::from(InstanceId([flags; 16])),
                    mode: if flag(0) { SealMode::Encrypted } else { SealMode::Authenticated },
                },
                channel: flags,
                count: u64::from(c),
            }),
            ..HeaderFields::default()
        };
        if let Err(error) = fields.check() {
            assert!(!error.to_string().contains(char::is_control));
            return;
        }
        let mut packet = Vec::new();
        fields.emit(&mut packet);
        let id = EncodingId::RAPTORQ;
        emit_payload_id(id, fontana_fec::Sbn(a >> 24), fontana_fec::Esi(b >> 8), &mut packet);
        packet.extend([1, 2, 3]);
        let parsed = Packet::parse(&packet).unwrap();
        let header = parsed.header;
        assert_eq!(
            (header.tsi, header.toi.unwrap_or_default()),
            (fields.tsi, fields.toi.unwrap_or_default())
        );
        assert_eq!((header.close_session, header.close_object), (flag(2), flag(3)));
        assert_eq!(header.extensions.time().is_some(), flag(5));
        assert_eq!(header.extensions.are_of_encrypted(), flag(7) && flag(0));
        if let Some(oti) = fields.fti {
            let content = header.extensions.fti().unwrap();
            let id = oti.scheme.profile().encoding_id;
            assert_eq!(fontana_wire::fti::parse(id, content), Ok(oti));
        }
        let fdt = header.extensions.into_iter().find_map(|extension| match extension {
            Extension::Fdt(fdt) => Some(fdt),
            _ => None,
        });
        assert_eq!(fdt, fields.fdt);
        assert_eq!(parsed.payload(id).unwrap().unwrap().symbol, [1, 2, 3]);
    });
}

/// A manifest with every kind of entry, with bytes of it replaced, and its digest made right again
/// where it has one.
#[test]
fn manifest_with_every_kind_of_entry() {
    let names = vec![manifest::path("tree/z")];
    let sample = manifest::with_runs().with_unsettled(names).unwrap();
    let good = sample.emit();
    bolero::check!().with_type::<(u16, u16, Vec<u8>)>().for_each(|(at, cut, patch)| {
        let bytes = patched(&good, *at, *cut, patch);
        match Manifest::parse(&bytes, &ManifestLimits::default()) {
            Ok(manifest) => {
                assert_eq!(manifest.emit(), bytes);
                assert!(!manifest.label().contains('\0') || manifest.label() != sample.label());
                for file in manifest.files() {
                    let holes: u64 = file.holes().map(|hole| hole.end - hole.start).sum();
                    assert!(holes <= file.length());
                    assert!(file.placed_segments().count() >= file.holes().count());
                }
                for object in manifest.objects() {
                    assert_eq!(manifest.object(object.toi), Some(object));
                    assert!(Toi::of_content(&object.oti, &object.block_hashes).is_content());
                    assert_ne!(object.hash(), Hash([0; 32]));
                }
                assert!(manifest.files().count() <= manifest.entries().len());
                assert!(manifest.tree_hash() == sample.tree_hash() || bytes != good);
                assert_eq!(manifest_hash(&bytes) == manifest_hash(&good), bytes == good);
            }
            Err(error) => assert!(!error.to_string().contains(char::is_control)),
        }
    });
}

#[test]
fn places_of_symbols_on_a_shelf() {
    let good = documentation::shelf_index();
    bolero::check!().with_type::<(u16, u16, Vec<u16>)>().for_each(|(stretch, size, blocks)| {
        let index = ShelfIndex { stretch_permille: *stretch, ..good };
        let Ok(index) = ShelfIndex::parse(&index.emit()) else { return };
        let blocks: Vec<u32> = blocks.iter().take(20).map(|&k| u32::from(k) + 1).collect();
        let layout = index.layout(size.max(&1).to_owned(), blocks.iter().copied());
        assert_eq!((layout.block_count(), layout.symbol_size()), (blocks.len(), *size.max(&1)));
        // The runs of all rounds follow each other, and are the whole file.
        let mut end = 0;
        let mut symbols = vec![0; blocks.len()];
        for run in (0..layout.rounds()).flat_map(|round| layout.round(round)) {
            let of_block = &mut symbols[run.sbn as usize];
            assert_eq!((run.offset, run.indices.start), (end, *of_block));
            *of_block = run.indices.end;
            end += u64::from(run.indices.end - run.indices.start) * u64::from(layout.symbol_size());
        }
        assert_eq!(end, layout.length());
        assert!(symbols.iter().zip(&blocks).all(|(&count, &k)| count == index.block_symbols(k)));
        let names = [
            ShelfIndex::file_name(index.manifest),
            ShelfIndex::symbols_file_name(index.manifest, index.number.first_esi()),
        ];
        assert!(
            names.iter().all(|name| !name.contains('/') && !index.number.to_string().is_empty())
        );
    });
}
