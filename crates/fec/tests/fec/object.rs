//! Objects as packets, with the crate `raptorq` at the other end; and hostile packets.

use crate::block::Random;
use fontana_fec::object::{Decoder, Encoder, ObjectError, PacketError};
use fontana_fec::{Esi, OtiError, Sbn};
use proptest::prelude::*;
use raptorq::{EncodingPacket, ObjectTransmissionInformation};

/// The packets of the source symbols, some lost, and repair packets, in random order.
fn reception(packets: impl Iterator<Item = Vec<u8>>, random: &mut Random) -> Vec<Vec<u8>> {
    let loss = random.below(60);
    let mut received: Vec<_> = packets.filter(|_| random.below(100) >= loss).collect();
    for i in 0..received.len() {
        let other = i + random.below((received.len() - i) as u32) as usize;
        received.swap(i, other);
    }
    received
}

/// The first object that comes out, and the number of objects.
fn decode(decoder: &mut Decoder, packets: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut objects = packets.iter().filter_map(|packet| decoder.push(packet).unwrap());
    let object = objects.next();
    assert_eq!(objects.next(), None, "complete once");
    object
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(1_000),
        ..ProptestConfig::default()
    })]

    #[test]
    fn packets_are_those_of_the_crate_raptorq(
        length in 1_usize..3_000,
        symbol_size in 1_u16..=100,
        seed: u64,
    ) {
        let mut random = Random(seed);
        let data = random.bytes(length);
        let ours = Encoder::new(&data, symbol_size).unwrap();
        let config = ObjectTransmissionInformation::new(length as u64, symbol_size, 1, 1, 1);
        prop_assert_eq!(ours.oti(), config.serialize());
        let theirs = raptorq::Encoder::new(&data, config);
        let repair = 5 + ours.layout().max_source_symbols();
        let packets: Vec<_> = ours.packets(repair).collect();
        let their_packets = theirs.get_encoded_packets(repair);
        prop_assert!(their_packets.iter().map(EncodingPacket::serialize).eq(packets.clone()));

        let received = reception(packets.into_iter(), &mut random);
        let mut decoder = raptorq::Decoder::new(config);
        let parsed = received.iter().map(|packet| EncodingPacket::deserialize(packet));
        let by_them = parsed.filter_map(|packet| decoder.decode(packet)).next();
        let by_us = decode(&mut Decoder::new(&ours.oti()).unwrap(), &received);
        prop_assert!(by_them == by_us);
        prop_assert!(by_them.is_none_or(|object| object == data));
    }

    /// Several blocks, with sub-blocks and alignment, which our encoder does not make.
    #[test]
    fn objects_of_the_crate_raptorq_are_decoded(
        (blocks, sub_blocks, alignment) in (1_u8..=4, 1_u16..=4, 1_u8..=4),
        units in 4_u16..=10,
        length in 400_usize..2_000,
        seed: u64,
    ) {
        let mut random = Random(seed);
        let data = random.bytes(length);
        let symbol_size = units * u16::from(alignment);
        let config = ObjectTransmissionInformation::new(
            length as u64, symbol_size, blocks, sub_blocks, alignment,
        );
        let packets = raptorq::Encoder::new(&data, config).get_encoded_packets(900);
        let packets = packets.iter().map(EncodingPacket::serialize);
        let received = reception(packets, &mut random);
        let mut decoder = Decoder::new(&config.serialize()).unwrap();
        prop_assert_eq!(decoder.layout().block_count(), blocks.into());
        prop_assert!(decode(&mut decoder, &received) == Some(data));
    }

    #[test]
    fn any_oti_and_any_packets_are_survived(
        oti: [u8; 12],
        symbol_size in 0_u8..20,
        length in 0_u8..200,
        is_small: bool,
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..30),
    ) {
        let mut oti = oti;
        if is_small {
            // Such as packets of the following sizes fit.
            oti = [0, 0, 0, 0, length, oti[5], 0, symbol_size, 1 + oti[8] % 3, 0, 1, 1];
        }
        let Ok(mut decoder) = Decoder::new(&oti) else { return Ok(()) };
        for mut packet in packets {
            if let [sbn, e2, e1, ..] = &mut packet[..] && is_small {
                (*sbn, *e2, *e1) = (*sbn % 4, 0, 0);
            }
            if let Ok(Some(object)) = decoder.push(&packet) {
                prop_assert_eq!(object.len() as u64, decoder.layout().oti().transfer_length);
            }
        }
    }
}

#[test]
fn an_object_of_many_blocks_has_them_all() {
    let data = Random(1).bytes(3 * 8_192 * 2 - 5);
    let encoder = Encoder::new(&data, 2).unwrap();
    assert_eq!(encoder.layout().block_count(), 3);
    let mut decoder = Decoder::new(&encoder.oti()).unwrap();
    let received: Vec<_> = encoder.packets(300).enumerate().collect();
    let received = received.into_iter().filter(|(i, _)| i % 100 != 7).map(|(_, packet)| packet);
    assert_eq!(decode(&mut decoder, &received.collect::<Vec<_>>()), Some(data));
}

#[test]
fn packets_may_hold_several_symbols_and_no_padding() {
    let data: Vec<u8> = (0..22).collect();
    let encoder = Encoder::new(&data, 4).unwrap();
    let symbol = |esi| encoder.packet(Sbn(0), Esi(esi)).unwrap().split_off(4);
    let packet = |first: u8, symbols: Vec<u8>| [vec![0, 0, 0, first], symbols].concat();
    let mut decoder = Decoder::new(&encoder.oti()).unwrap();
    assert_eq!(decoder.push(&packet(0, [symbol(0), symbol(1), symbol(2)].concat())), Ok(None));
    // The last symbol has two bytes of the object.
    let last = packet(4, [symbol(4), data[20..].to_vec()].concat());
    assert_eq!(decoder.push(&last), Ok(None));
    assert_eq!(decoder.push(&last), Ok(None), "nothing new");
    let short = packet(3, symbol(3)[..2].to_vec());
    assert_eq!(decoder.push(&short), Err(PacketError::Size { actual: 6, symbol: 4 }));
    assert_eq!(decoder.push(&packet(3, symbol(3))), Ok(Some(data.clone())));
    assert_eq!(decoder.push(&packet(3, symbol(3))), Ok(None));
    assert_eq!(decoder.push(&packet(6, symbol(6))), Ok(None));
}

#[test]
fn packets_that_the_object_does_not_have_are_refused() {
    let encoder = Encoder::new(&[1; 40], 4).unwrap();
    let mut decoder = Decoder::new(&encoder.oti()).unwrap();
    for size in [0, 3, 4, 7, 9] {
        let wrong = PacketError::Size { actual: size, symbol: 4 };
        assert_eq!(decoder.push(&vec![0; size]), Err(wrong), "{size}");
    }
    let no_block = PacketError::Block { block: Sbn(1), blocks: 1 };
    assert_eq!(decoder.push(&[1, 0, 0, 0, 1, 2, 3, 4]), Err(no_block));
    // The symbol after the last one of the block.
    let beyond = decoder.push(&[0, 255, 255, 255, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(matches!(beyond, Err(PacketError::Esi(error)) if error.esi == Esi(1 << 24)));
    assert_eq!(encoder.packet(Sbn(1), Esi(0)), None);
    assert_eq!(encoder.packet(Sbn(0), Esi(1 << 24)), None);
    assert!(encoder.packet(Sbn(0), Esi((1 << 24) - 1)).is_some());
}

#[test]
fn objects_that_no_packets_are_made_of_are_refused() {
    assert_eq!(Encoder::new(&[], 4).err(), Some(ObjectError::Empty));
    assert_eq!(Encoder::new(&[1], 0).err(), Some(OtiError::SymbolSize.into()));
    assert_eq!(Decoder::new(&[0; 12]).err(), Some(ObjectError::Empty));
    // 255 blocks of 56 403 symbols of one byte fit, and no byte more.
    let longest = 255 * 56_403;
    let data = vec![0; longest + 1];
    assert!(Encoder::new(&data[..longest], 1).is_ok());
    let too_long = OtiError::BlockLength { actual: 56_404, limit: 56_403 };
    assert_eq!(Encoder::new(&data, 1).err(), Some(too_long.into()));
    // The longest object takes no memory before its symbols.
    let oti = [0xDB, 0x75, 0xD1, 0x89, 0x53, 0, 0xFF, 0xFF, 255, 0, 1, 1];
    assert_eq!(Decoder::new(&oti).unwrap().layout().total_source_symbols(), 255 * 56_403);
}
