//! Congestion control in the head and in the packets.

use crate::{head, truncations};
use fontana_wire::{
    Cci, CongestionControl, CongestionError, FlidCci, FlidSl, HeadError, LayerRates, MAX_CHANNELS,
    Rlc, RlcCci, SessionHead, SyncSpacing, UnverifiedHead, Webrc, WebrcCci,
};
use proptest::prelude::*;

/// The RFC's defaults for 10 Mbit/s in packets of 1400 bytes.
pub(crate) fn webrc() -> Webrc {
    Webrc {
        rate_bytes_per_second: 1_250_000,
        packet_bytes: 1400,
        base_packets_per_second: 1,
        slot_milliseconds: 10_000,
        decay_256ths: 192,
        wave_slots: 19,
        quiet_slots: 30,
    }
}

pub(crate) fn rlc() -> Rlc {
    Rlc {
        layers: LayerRates::geometric(16_000, 512, 6).unwrap(),
        cycle_milliseconds: 250,
        spacing: SyncSpacing::Nested,
        burst_milliseconds: 100,
        deaf_milliseconds: 10_000,
    }
}

fn with(control: CongestionControl) -> SessionHead {
    SessionHead { congestion_control: control, ..head::sample() }
}

fn parsed(bytes: &[u8]) -> Result<CongestionControl, HeadError> {
    Ok(UnverifiedHead::parse(bytes)?.without_verification().congestion_control)
}

#[test]
fn a_fixed_rate_on_one_channel_costs_a_head_two_bytes() {
    let bytes = head::sample().emit(None);
    assert_eq!(bytes[48..50], [0, 1]);
    assert_eq!(CongestionControl::FixedRate.parameter_size(), 0);
}

#[test]
fn doubling_layers_have_rates_1_1_2_4() {
    let layers = LayerRates::geometric(16_000, 512, 5).unwrap();
    let cumulative: Vec<_> = layers.cumulative().collect();
    assert_eq!(cumulative, [16_000, 32_000, 64_000, 128_000, 256_000]);
    let listed = LayerRates::listed(vec![16_000, 16_000, 32_000, 64_000, 128_000]).unwrap();
    assert!(listed.cumulative().eq(layers.cumulative()));
    // FLID's factor of 1.3, rounded down to 332/256.
    let flid = LayerRates::geometric(1000, 332, 3).unwrap();
    assert_eq!(flid.cumulative().collect::<Vec<_>>(), [1000, 1296, 1680]);
}

#[test]
fn layers_are_1_to_64_with_a_rate_each_and_less_than_four_gigabytes_together() {
    let refused = |layers: Result<LayerRates, _>, refused_as: &str| match layers {
        Err(CongestionError::Range { what, .. }) => assert_eq!(what, refused_as),
        other => panic!("{other:?}"),
    };
    assert!(LayerRates::listed(vec![1; MAX_CHANNELS.into()]).is_ok());
    refused(LayerRates::listed(vec![1; 65]), "the number of layers");
    refused(LayerRates::listed(vec![]), "the number of layers");
    refused(LayerRates::geometric(1, 512, 0), "the number of layers");
    refused(LayerRates::listed(vec![5, 0]), "the rate of a layer");
    refused(LayerRates::geometric(0, 512, 1), "the rate of a layer");
    refused(LayerRates::geometric(1000, 256, 2), "the rate of a layer");
    assert!(LayerRates::geometric(1000, 257, 2).is_ok());
    assert!(LayerRates::listed(vec![u32::MAX - 1, 1]).is_ok());
    refused(LayerRates::listed(vec![u32::MAX, 1]), "the rate of all layers");
    assert!(LayerRates::geometric(1, 512, 32).is_ok());
    refused(LayerRates::geometric(1, 512, 33), "the rate of all layers");
    refused(LayerRates::geometric(u32::MAX, u16::MAX, 64), "the rate of a layer");
}

#[test]
fn parameters_have_one_encoding_each() {
    let listed = LayerRates::listed(vec![0x0102_0304, 5]).unwrap();
    let flid =
        FlidSl { layers: LayerRates::geometric(1000, 332, 9).unwrap(), slot_milliseconds: 500 };
    let examples: [(CongestionControl, &[u8]); 4] = [
        (CongestionControl::FixedLayers(listed), &[1, 2, 1, 1, 2, 3, 4, 0, 0, 0, 5]),
        (CongestionControl::Rlc(rlc()), &[2, 6, 0, 0, 0, 62, 128, 2, 0, 0, 250, 0, 0, 100, 39, 16]),
        (CongestionControl::FlidSl(flid), &[3, 9, 0, 0, 0, 3, 232, 1, 76, 1, 244]),
        (
            CongestionControl::Webrc(webrc()),
            &[4, 50, 0, 19, 18, 208, 5, 120, 0, 1, 39, 16, 192, 19, 30],
        ),
    ];
    for (control, bytes) in examples {
        let head = with(control.clone()).emit(None);
        assert_eq!(&head[48..48 + bytes.len()], bytes, "{control:?}");
        assert_eq!(control.parameter_size(), bytes.len() - 2);
        assert_eq!(parsed(&head), Ok(control));
        for cut in truncations(&head) {
            assert_eq!(parsed(cut), Err(HeadError::Truncated { actual: cut.len() }));
        }
    }
}

#[test]
fn a_head_with_64_listed_layers_has_the_documented_size() {
    let layers = LayerRates::listed(vec![1; 64]).unwrap();
    let longest = CongestionControl::Rlc(Rlc { layers, ..rlc() });
    assert_eq!(longest.parameter_size(), CongestionControl::MAX_PARAMETER_SIZE);
    let head = with(longest.clone());
    let key = fontana_wire::SecretKey::from_seed(&[7; 32]);
    let bytes = head.emit(Some(&key));
    assert_eq!(bytes.len(), SessionHead::MAX_SIZE + CongestionControl::MAX_PARAMETER_SIZE);
    assert_eq!(bytes.len(), 463);
    assert_eq!(parsed(&bytes), Ok(longest));
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    let changed = |control: CongestionControl, at: usize, value: u8| {
        let mut bytes = with(control).emit(None);
        bytes[48 + at] = value;
        match parsed(&bytes) {
            Err(HeadError::CongestionControl(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let fixed = || CongestionControl::FixedRate;
    let webrc = || CongestionControl::Webrc(webrc());
    let rlc = || CongestionControl::Rlc(rlc());
    assert_eq!(
        changed(fixed(), 0, 5),
        "congestion control 5 is unknown; a later Fontana may know it"
    );
    for count in [0, 2, 255] {
        assert!(changed(fixed(), 1, count).contains("the number of channels is"));
    }
    assert!(changed(rlc(), 1, 0).contains("the number of layers is 0, allowed is 1 to 64"));
    assert!(changed(rlc(), 2, 2).contains("the form of the layers"));
    assert!(changed(rlc(), 11, 2).contains("the spacing of RLC"));
    assert!(changed(rlc(), 13, 126).contains("the burst of RLC in ms is 126, allowed is 0 to 125"));
    assert!(changed(webrc(), 1, 49).contains("the number of channels of WEBRC"));
    assert!(changed(webrc(), 12, 127).contains("the decay of WEBRC"));
    assert!(changed(webrc(), 12, 251).contains("the decay of WEBRC"));
    assert!(changed(webrc(), 13, 0).contains("the slots of a wave"));
    assert!(changed(webrc(), 13, 34).contains("the wave channels of WEBRC is 64"));
    let most = Webrc { wave_slots: 33, ..self::webrc() };
    assert_eq!(CongestionControl::Webrc(most).checked().unwrap().channel_count(), 64);
}

#[test]
fn the_cci_of_every_scheme_has_32_bits() {
    let rlc = RlcCci { sync_point: true, burst: false, layer: 3, sequence: 0x0102 };
    assert_eq!(rlc.emit().low32(), 0xD503_0102, "MCL's filler 55 and flag 80");
    let burst = RlcCci { sync_point: false, burst: true, ..rlc };
    assert_eq!(burst.emit().low32(), 0x5703_0102);
    let flid = FlidCci { trigger: true, slot: 127, layer: 1, sequence: 9 };
    assert_eq!(flid.emit().low32(), 0xFF01_0009);
    let webrc = WebrcCci { slot: 48, channel: 49, sequence: u16::MAX };
    assert_eq!(webrc.emit().low32(), 0x3031_FFFF);
    for cci in [rlc.emit(), burst.emit(), flid.emit(), webrc.emit()] {
        assert_eq!(cci.words(), 1);
    }
    let wide = Cci::new(1, 2).unwrap();
    assert_eq!(RlcCci::parse(wide), None);
    assert_eq!(FlidCci::parse(wide), None);
    assert_eq!(WebrcCci::parse(wide), None);
}

#[test]
fn a_packet_has_the_number_that_its_scheme_puts_into_the_cci_of_its_channel() {
    let layers = LayerRates::geometric(10_000, 512, 4).unwrap();
    let fixed = CongestionControl::FixedLayers(layers.clone()).numbering();
    let cci = Cci::from_u32(0xFFFF_FFFE);
    let number = fixed.sequence(3, cci).unwrap();
    assert_eq!((number.value, number.modulus), (0xFFFF_FFFE, 1 << 32));
    assert_eq!((number.steps_from(0xFFFF_FFFC), number.steps_from(1)), (2, -3));

    let slot_milliseconds = 500;
    let flid = CongestionControl::FlidSl(FlidSl { layers, slot_milliseconds }).numbering();
    let cci = FlidCci { trigger: true, slot: 5, layer: 2, sequence: 3 }.emit();
    let number = flid.sequence(2, cci).unwrap();
    assert_eq!((number.value, number.modulus, number.steps_from(65_534)), (3, 1 << 16, 5));
    assert_eq!(flid.sequence(1, cci), None, "of another layer");
    assert_eq!(flid.sequence(2, Cci::new(1, 2).unwrap()), None, "too wide");

    let waves = webrc().wave_channels();
    let modulus = webrc().base_modulus();
    let webrc = CongestionControl::Webrc(webrc()).numbering();
    let of = |channel, sequence, slot| WebrcCci { slot, channel, sequence }.emit();
    let last = (modulus - 1) as u16;
    let number = webrc.sequence(0, of(waves, last, 0)).unwrap();
    assert_eq!((number.modulus, number.steps_from(modulus - 2)), (modulus.into(), 1));
    assert_eq!(webrc.sequence(1, of(0, u16::MAX, 0)).unwrap().modulus, 1 << 16);
    assert_eq!(webrc.sequence(1, of(1, 0, 0)), None, "of another wave");
    assert_eq!(webrc.sequence(0, of(0, 0, 0)), None, "of a wave");
    assert_eq!(webrc.sequence(0, of(waves, 0, waves)), None, "of no slot");
}

proptest! {
    #[test]
    fn any_32_bits_are_read_as_every_scheme_would_write_them(value: u32) {
        let cci = Cci::from_u32(value);
        let flid = FlidCci::parse(cci).unwrap();
        prop_assert_eq!(flid.emit(), cci);
        prop_assert!(flid.slot < FlidCci::SLOTS);
        prop_assert_eq!(WebrcCci::parse(cci).unwrap().emit(), cci);
        let rlc = RlcCci::parse(cci).unwrap();
        prop_assert_eq!(RlcCci::parse(rlc.emit()), Some(rlc));
    }
}
