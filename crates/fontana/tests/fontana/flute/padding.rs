//! The padding of an object's last source symbol: which sessions have it on the wire, and that
//! receivers accept both forms.

use super::fontana_side::{
    Files, FontanaReceiver, FontanaSender, addressing, air, assert_same, files_of, noise, write,
};
use super::handmade::{SYMBOL, Session, described};
use super::peer::Listening;
use fontana::wire::{FdtFile, Packet};
use fontana::{Code, FluteFormat, Format, Outcome};
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{EncodingId, FecScheme, Oti};
use std::collections::BTreeSet;

const SIZE: usize = 500;
const SYMBOLS: usize = 10;
const LAST: usize = 123;

/// The sizes of the last source symbol and of all others, on the wire, of a file of one block.
fn sizes_on_the_wire(code: Code, format: Format) -> [BTreeSet<usize>; 2] {
    let _air = air();
    let directory = tempfile::tempdir().unwrap();
    let addressing = addressing();
    let listening = Listening::join(&addressing);
    let files = write(&files_of(&[(SYMBOLS - 1) * SIZE + LAST]), directory.path());
    let _sender = FontanaSender::start(&addressing, files, |options| {
        options.code(code).format(format).symbol_size(Some(SIZE as u16)).block_symbols(20)
    });
    let mut sizes = [BTreeSet::new(), BTreeSet::new()];
    let mut symbols = 0;
    listening.read(|datagram| {
        let packet = Packet::parse(datagram).unwrap();
        if packet.header.extensions.fti().is_none() {
            let payload = packet.payload(EncodingId(packet.header.codepoint)).unwrap().unwrap();
            let is_last = payload.esi.0 as usize == SYMBOLS - 1;
            sizes[usize::from(!is_last)].insert(payload.symbol.len());
            symbols += 1;
        }
        symbols < 200
    });
    sizes
}

#[test]
fn plain_flute_sends_the_last_symbol_without_padding_where_its_code_allows_that() {
    let flute = || Format::Flute(FluteFormat::default());
    for (code, format, last) in [
        (Code::None, flute(), LAST),
        (Code::RaptorQ, flute(), LAST),
        (Code::Raptor, flute(), LAST),
        (Code::ReedSolomon, flute(), LAST),
        (Code::ReedSolomon, Format::default(), SIZE),
        (Code::None, Format::default(), SIZE),
        (Code::RaptorQ, Format::default(), SIZE),
    ] {
        let sizes = sizes_on_the_wire(code, format);
        assert_eq!(sizes, [[last].into(), [SIZE].into()], "{code:?}");
    }
}

#[test]
fn a_padded_and_an_unpadded_last_symbol_are_both_received() {
    let files: Files = (1..=3)
        .map(|toi| (format!("file{toi}"), noise(20 * usize::from(SYMBOL) + toi, toi as u64)))
        .collect();
    for is_padded in [false, true] {
        let _air = air();
        let addressing = addressing();
        let receiver = FontanaReceiver::join(&addressing, |options| options);
        let numbered = || (1..).zip(&files);
        let mut session = Session::default()
            .table(numbered().map(|(toi, (name, bytes))| described(toi, name, bytes)));
        if is_padded {
            session = session.padded();
        }
        for (toi, (_, bytes)) in numbered() {
            session = session.file(toi, bytes);
        }
        let _sender = session.repeat(&addressing);
        let received = receiver.run();
        assert_eq!(received.summary.outcome, Outcome::Complete);
        assert_same(&received.files, &files);
    }
}

/// Source symbols alone, so that each is needed. Of the file with two sub-blocks, the last symbol
/// has nothing of the second one.
#[test]
fn padded_and_unpadded_symbols_of_sub_blocks_are_both_received() {
    let files: Files = [(1, 999), (2, 400), (3, 200), (3, 999)]
        .map(|(sub_blocks, last)| {
            let bytes = noise(20 * usize::from(SYMBOL) + last, last as u64);
            (format!("{sub_blocks} {last}"), bytes)
        })
        .into();
    let divided = |name: &str, bytes: &[u8]| {
        let sub_blocks = name.split(' ').next().unwrap().parse().unwrap();
        let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 2, sub_blocks, alignment: 4 });
        Oti { transfer_length: bytes.len() as u64, symbol_size: SYMBOL, scheme }
    };
    for is_padded in [false, true] {
        let _air = air();
        let addressing = addressing();
        let receiver = FontanaReceiver::join(&addressing, |options| options);
        let numbered = || (1..).zip(&files);
        let mut session = Session::default().table(numbered().map(|(toi, (name, bytes))| {
            FdtFile { oti: Some(divided(name, bytes)), ..described(toi, name, bytes) }
        }));
        if is_padded {
            session = session.padded();
        }
        for (toi, (name, bytes)) in numbered() {
            session = session.file_as(toi, divided(name, bytes), bytes);
        }
        let _sender = session.repeat(&addressing);
        let received = receiver.run();
        assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
        assert_same(&received.files, &files);
    }
}
