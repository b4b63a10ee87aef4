//! The vectors of docs/wire.md, which another implementation has computed (the Python package
//! `cryptography`).

use fontana::seal::{GroupKey, PacketOpener, PacketSealer};
use fontana::wire::{Cci, HeaderFields, InstanceId, SealField, SealMode, SessionSeal, Toi, Tsi};

const PAGE: &str = include_str!("../../../../docs/wire.md");

/// Bytes of the page's block with this name: the hexadecimal digits before the bars.
fn block(name: &str) -> Vec<u8> {
    let (_, rest) = PAGE.split_once(&format!("```text hex {name}\n")).expect(name);
    let (body, _) = rest.split_once("```").unwrap();
    let words = body.lines().flat_map(|line| line.split('|').next().unwrap().split_whitespace());
    words.map(|digits| u8::from_str_radix(digits, 16).unwrap()).collect()
}

#[test]
fn sealed_packets_are_those_of_the_page() {
    let key = GroupKey::from_bytes(std::array::from_fn(|i| i as u8));
    let id = InstanceId(std::array::from_fn(|i| 16 + i as u8)).into();
    for (name, mode) in [
        ("authenticated-packet", SealMode::Authenticated),
        ("encrypted-packet", SealMode::Encrypted),
    ] {
        let seal = SealField { session: SessionSeal { id, mode }, channel: 3, count: 9 };
        let fields = HeaderFields {
            cci: Cci::from_u32(3),
            codepoint: 6,
            seal: Some(seal),
            ..HeaderFields::new(Tsi(5), Some(Toi(1)))
        };
        let mut datagram = Vec::new();
        fields.emit(&mut datagram);
        datagram.extend(*b"\0\0\0\0hello, world\n");
        PacketSealer::new(&key, id).seal(&mut datagram);
        assert_eq!(datagram, block(name), "{name}");
        assert!(PacketOpener::new(key.clone()).open(3, &mut datagram), "{name}");
        assert!(datagram.ends_with(b"hello, world\n"), "{name}");
    }
}
