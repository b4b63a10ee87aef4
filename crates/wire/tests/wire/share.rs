//! Messages among receivers of one site.

use crate::fuzz::Sum;
use crate::{flips, truncations};
use fontana_wire::{
    Hash, MemberId, MissingSymbols, SealedShare, ShareBody, ShareContent, ShareError, ShareMessage,
    ShareRequest, ShareSymbol, SharedBlock,
};

/// A message of each kind.
pub(crate) fn messages() -> Vec<ShareMessage<'static>> {
    let message = |body| ShareMessage {
        content: ShareContent::from(Hash([7; Hash::SIZE])),
        member: 0x0102_0304,
        block: SharedBlock { toi: 5, sbn: 9 },
        body,
    };
    let request = |missing| {
        let (clock_us, round_trip_us, read_us, lacking) = (1, 2, 9, 3);
        ShareBody::Request(ShareRequest { clock_us, round_trip_us, read_us, lacking, missing })
    };
    let symbol = |has_block| {
        let bytes = b"symbol".as_slice();
        ShareBody::Symbol(ShareSymbol { has_block, to: 4, echo_us: 5, esi: 6, bytes })
    };
    let missing = MissingSymbols::of([3, 4, 70]);
    [request(None), request(missing), symbol(false), symbol(true)].map(message).into()
}

pub(crate) fn emitted(message: &ShareMessage<'_>) -> Vec<u8> {
    let mut datagram = Vec::new();
    message.emit(&mut datagram);
    datagram
}

#[test]
fn messages_are_read_as_they_were_written() {
    for message in messages() {
        let datagram = emitted(&message);
        assert_eq!(ShareMessage::parse(&datagram), Ok(message.clone()));
        for length in 0..datagram.len() {
            // A shorter symbol is one of another length, as far as a message can tell.
            let is_symbol = matches!(message.body, ShareBody::Symbol(_));
            let is_cut = ShareMessage::parse(&datagram[..length]).is_err();
            let has_bits = matches!(&message.body, ShareBody::Request(r) if r.missing.is_some());
            let may_pass = is_symbol && length >= ShareMessage::SYMBOL_HEADER;
            assert!(is_cut || may_pass || has_bits && length > 44, "{message:?}, {length} bytes");
        }
    }
}

/// The bytes of `docs/wire.md`.
#[test]
fn a_request_that_names_symbols_has_these_bytes() {
    let [_, named, ..] = &messages()[..] else { panic!() };
    let head = [b"FS\x01\x01".as_slice(), &[7; 8], &[1, 2, 3, 4, 0, 0, 0, 5, 0, 0, 0, 9]].concat();
    let body = [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0, 3];
    let map = [0b1100_0000, 0, 0, 0, 0, 0, 0, 0, 0b0001_0000];
    assert_eq!(emitted(named), [&head[..], &body, &map].concat());
}

#[test]
fn maps_hold_the_symbols_within_their_span() {
    let map = MissingSymbols::of([8, 9, 8 + MissingSymbols::MAX_SPAN - 1]).unwrap();
    assert_eq!(map.symbols().collect::<Vec<_>>(), [8, 9, 8 + MissingSymbols::MAX_SPAN - 1]);
    let map = MissingSymbols::of([8, 9, 8 + MissingSymbols::MAX_SPAN, 50_000]).unwrap();
    assert_eq!(map.symbols().collect::<Vec<_>>(), [8, 9]);
    assert_eq!(MissingSymbols::of([]), None);
    let mut map = MissingSymbols::of([8, 9, 30]).unwrap();
    let removed = [7, 8, 8, 10, 30, 31, 90_000].map(|esi| map.remove(esi));
    assert_eq!(removed, [false, true, false, false, true, false, false]);
    assert_eq!(map.symbols().collect::<Vec<_>>(), [9]);
}

#[test]
fn other_bytes_are_refused() {
    let [counted, named, symbol, _] = &messages().iter().map(emitted).collect::<Vec<_>>()[..]
    else {
        panic!()
    };
    let with = |datagram: &[u8], at: usize, byte: u8| {
        let mut datagram = datagram.to_vec();
        datagram[at] = byte;
        datagram
    };
    let parse = |datagram: &[u8]| ShareMessage::parse(datagram).map(|_| ()).unwrap_err();
    assert_eq!(parse(&with(counted, 0, b'X')), ShareError::Magic);
    assert_eq!(parse(&with(counted, 2, 2)), ShareError::Unknown { format: 2, kind: 0 });
    assert_eq!(parse(&with(symbol, 3, 4)), ShareError::Unknown { format: 1, kind: 4 });
    assert_eq!(parse(&with(counted, 39, 0)), ShareError::Nothing);
    assert_eq!(parse(&[counted, &[0_u8][..]].concat()), ShareError::TrailingBytes);
    assert_eq!(parse(&symbol[..35]), ShareError::Truncated { actual: 35 });
    // Maps that begin or end with symbols that are not lacking, or are too long.
    assert_eq!(parse(&with(named, 44, 0x40)), ShareError::Map);
    assert_eq!(parse(&[named, &[0_u8][..]].concat()), ShareError::Map);
    assert_eq!(parse(&[named, &[1_u8; 1_280][..]].concat()), ShareError::Map);
    assert_eq!(parse(&with(&with(&with(named, 40, 255), 41, 255), 42, 255)), ShareError::Map);
}

/// Every message, sealed by the member with their number.
pub(crate) fn sealed() -> Vec<(SealedShare, Vec<u8>)> {
    let seal = |(counter, message): (u64, ShareMessage<'_>)| {
        let member = MemberId([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        let sealed = SealedShare { content: message.content, member, counter };
        let mut datagram = Vec::new();
        sealed.emit(&message, &Sum, &mut datagram);
        (sealed, datagram)
    };
    (u64::MAX - 9..).zip(messages()).map(seal).collect()
}

#[test]
fn sealed_messages_are_opened_in_place() {
    for ((sealed, datagram), message) in sealed().into_iter().zip(messages()) {
        assert_eq!(datagram.len(), emitted(&message).len() + SealedShare::OVERHEAD);
        assert!(ShareMessage::parse(&datagram).is_err(), "{sealed:?}");
        assert_eq!(SealedShare::find(&datagram), Some(sealed));
        let mut opened = datagram.clone();
        assert!(sealed.open(&mut opened, &Sum));
        assert_eq!(SealedShare::opened(&opened), emitted(&message));
    }
}

#[test]
fn sealed_messages_that_are_changed_are_not_opened() {
    let opens = |mut datagram: Vec<u8>| {
        SealedShare::find(&datagram).is_some_and(|sealed| sealed.open(&mut datagram, &Sum))
    };
    for (_, datagram) in sealed() {
        assert!(opens(datagram.clone()));
        assert!(!flips(&datagram).any(opens));
        assert!(!truncations(&datagram).any(|part| opens(part.to_vec())));
    }
}
