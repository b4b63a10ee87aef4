//! Fontana sends, the peer receives.

use super::fontana_side::{
    FontanaSender, Losing, MIB, SIZES, addressing, air, assert_same, files_of, noise, text, write,
};
use super::peer::{Listening, Outcome, complete, with_a_large_cache};
use fontana::wire::{ContentEncoding, Packet, Toi};
use fontana::{Code, FluteFormat, Format, Ordering, SenderBuilder};
use std::time::Duration;

/// For receivers that write blocks in order, with as few repair symbols as the loss permits.
const SEQUENTIAL: Ordering = Ordering::Sequential { repair_permille: 20 };

/// Sends files of all sizes to the peer, which starts to listen first.
fn every_size_arrives(
    change: impl FnOnce(SenderBuilder) -> SenderBuilder,
    config: flute::receiver::Config,
    losing: Losing,
) {
    let _air = air();
    let directory = tempfile::tempdir().unwrap();
    let files = files_of(&SIZES);
    let addressing = addressing();
    let listening = Listening::join(&addressing);
    let _sender = FontanaSender::start(&addressing, write(&files, directory.path()), change);
    assert_same(&complete(listening.receive(files.len(), config, losing)), &files);
}

/// Blocks of 1 000 symbols are 1.3 MB: seven of them wait in a cache of 10 MB for one that is not
/// complete.
fn small_blocks_in_order(code: Code) -> impl FnOnce(SenderBuilder) -> SenderBuilder {
    move |options| options.code(code).ordering(SEQUENTIAL).block_symbols(1000)
}

#[test]
fn a_peer_with_its_defaults_takes_files_without_a_code_in_small_blocks() {
    let peer = flute::receiver::Config::default();
    every_size_arrives(small_blocks_in_order(Code::None), peer, Losing::permille(0));
}

#[test]
fn a_peer_with_its_defaults_takes_raptorq_in_small_blocks() {
    let peer = flute::receiver::Config::default();
    every_size_arrives(small_blocks_in_order(Code::RaptorQ), peer, Losing::permille(0));
}

#[test]
fn a_peer_with_a_large_cache_takes_files_without_a_code_as_fontana_sends_them() {
    every_size_arrives(|o| o.code(Code::None), with_a_large_cache(), Losing::permille(0));
}

#[test]
fn a_peer_with_a_large_cache_takes_raptorq_as_fontana_sends_it() {
    every_size_arrives(|options| options, with_a_large_cache(), Losing::permille(0));
}

#[test]
fn a_peer_with_its_defaults_takes_a_block_of_10_mib_and_not_one_symbol_more() {
    const SYMBOL: usize = 1344;
    let outcome_of = |symbols: usize| {
        let _air = air();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("block");
        std::fs::write(&path, noise(symbols * SYMBOL, 1)).unwrap();
        let addressing = addressing();
        let listening = Listening::join(&addressing);
        let _sender = FontanaSender::start(&addressing, vec![path], |options| {
            options.ordering(SEQUENTIAL).block_symbols(56_403).symbol_size(Some(SYMBOL as u16))
        });
        let config = flute::receiver::Config::default();
        let outcomes = listening.receive(1, config, Losing::permille(0));
        outcomes.into_iter().map(|(_, outcome)| outcome).next()
    };
    let fits = 10 * MIB / SYMBOL;
    assert!(outcome_of(fits) == Some(Outcome::Complete(noise(fits * SYMBOL, 1))));
    assert!(outcome_of(fits + 1) == Some(Outcome::Failed));
}

/// Sends to a peer that loses one datagram in ten.
fn lossy_peer_completes(
    bytes: usize,
    change: impl FnOnce(SenderBuilder) -> SenderBuilder,
    config: flute::receiver::Config,
) {
    let _air = air();
    let directory = tempfile::tempdir().unwrap();
    let files = files_of(&[1, bytes]);
    let addressing = addressing();
    let listening = Listening::join(&addressing);
    let _sender = FontanaSender::start(&addressing, write(&files, directory.path()), change);
    let outcomes = listening.receive(files.len(), config, Losing::permille(100));
    assert_same(&complete(outcomes), &files);
}

#[test]
fn a_peer_that_loses_a_tenth_completes_with_raptorq() {
    lossy_peer_completes(16 * MIB, |options| options, with_a_large_cache());
}

#[test]
fn a_peer_with_its_defaults_that_loses_a_tenth_completes_with_repair_symbols_behind_each_block() {
    let send = |options: SenderBuilder| {
        options.ordering(Ordering::Sequential { repair_permille: 200 }).block_symbols(1000)
    };
    lossy_peer_completes(16 * MIB, send, flute::receiver::Config::default());
}

#[test]
fn a_peer_that_loses_a_tenth_completes_without_a_code_when_the_carousel_comes_round() {
    let send = |options: SenderBuilder| options.code(Code::None);
    lossy_peer_completes(MIB, send, flute::receiver::Config::default());
}

#[test]
fn a_peer_that_loses_a_tenth_completes_with_raptor() {
    lossy_peer_completes(4 * MIB, |o| o.code(Code::Raptor), with_a_large_cache());
}

#[test]
fn a_peer_that_loses_a_tenth_completes_with_reed_solomon() {
    lossy_peer_completes(4 * MIB, |o| o.code(Code::ReedSolomon), with_a_large_cache());
}

#[test]
fn a_peer_with_its_defaults_takes_reed_solomon_block_by_block() {
    let send = |options: SenderBuilder| {
        options.code(Code::ReedSolomon).ordering(Ordering::Sequential { repair_permille: 250 })
    };
    lossy_peer_completes(16 * MIB, send, flute::receiver::Config::default());
}

#[test]
fn a_peer_that_joins_late_completes_without_the_first_pass() {
    let _air = air();
    let directory = tempfile::tempdir().unwrap();
    let files = files_of(&[0, 1, 4 * MIB]);
    let addressing = addressing();
    let _sender =
        FontanaSender::start(&addressing, write(&files, directory.path()), |options| options);
    // More than a pass at 20 MB/s.
    std::thread::sleep(Duration::from_millis(400));
    let listening = Listening::join(&addressing);
    let outcomes = listening.receive(files.len(), with_a_large_cache(), Losing::permille(0));
    assert_same(&complete(outcomes), &files);
}

#[test]
fn a_session_of_nothing_but_an_empty_file_arrives_with_either_code() {
    for code in [Code::None, Code::RaptorQ] {
        let _air = air();
        let directory = tempfile::tempdir().unwrap();
        let files = files_of(&[0]);
        let addressing = addressing();
        let listening = Listening::join(&addressing);
        let paths = write(&files, directory.path());
        let _sender = FontanaSender::start(&addressing, paths, |options| options.code(code));
        let config = flute::receiver::Config::default();
        let outcomes = listening.receive(files.len(), config, Losing::permille(0));
        assert_same(&complete(outcomes), &files);
    }
}

#[test]
fn names_that_are_no_uris_arrive_as_they_are() {
    let _air = air();
    let directory = tempfile::tempdir().unwrap();
    let names = ["100% <a&b> \"c\" #1?", "grüße.txt", "..hidden"];
    let files = names.into_iter().map(|name| (name.to_owned(), noise(100, 1))).collect();
    let addressing = addressing();
    let listening = Listening::join(&addressing);
    let _sender =
        FontanaSender::start(&addressing, write(&files, directory.path()), |options| options);
    let config = flute::receiver::Config::default();
    let outcomes = listening.receive(files.len(), config, Losing::permille(0));
    assert_same(&complete(outcomes), &files);
}

#[test]
fn a_session_of_a_hundred_files_needs_a_table_of_several_packets() {
    for code in [Code::None, Code::RaptorQ] {
        let _air = air();
        let directory = tempfile::tempdir().unwrap();
        let files = (0..100).map(|n| (format!("file {n:03}"), noise(n * 37, n as u64))).collect();
        let addressing = addressing();
        let listening = Listening::join(&addressing);
        let paths = write(&files, directory.path());
        let _sender = FontanaSender::start(&addressing, paths, |options| options.code(code));
        let config = flute::receiver::Config::default();
        let outcomes = listening.receive(files.len(), config, Losing::permille(100));
        assert_same(&complete(outcomes), &files);
    }
}

#[test]
fn a_peer_takes_what_is_a_single_object_of_a_session_with_a_manifest() {
    let _air = air();
    let directory = tempfile::tempdir().unwrap();
    let files = files_of(&[1, MIB]);
    let addressing = addressing();
    let listening = Listening::join(&addressing);
    let _sender = FontanaSender::start(&addressing, write(&files, directory.path()), |options| {
        options.format(Format::default())
    });
    let config = flute::receiver::Config::default();
    // The peer ignores the head, the manifest and the numbers of packets.
    let outcomes = listening.receive(files.len(), config, Losing::permille(100));
    assert_same(&complete(outcomes), &files);
}

/// rt-libflute 0.12.3 and MAD-FLUTE 1.7 do not read a table that is compressed with gzip.
#[test]
fn a_table_that_fits_a_symbol_is_not_compressed() {
    let _air = air();
    let directory = tempfile::tempdir().unwrap();
    for (names, encoding) in [(1, None), (30, Some(ContentEncoding::Gzip))] {
        let files = (0..names).map(|index| (format!("text {index}"), text(20_000))).collect();
        let addressing = addressing();
        let listening = Listening::join(&addressing);
        let mut flute = FluteFormat::default();
        flute.content_encoding = ContentEncoding::Gzip;
        let path = directory.path().join(names.to_string());
        std::fs::create_dir(&path).unwrap();
        let _sender = FontanaSender::start(&addressing, write(&files, &path), |options| {
            options.format(Format::Flute(flute))
        });
        let mut found = None;
        listening.read(|packet| {
            let header = Packet::parse(packet).unwrap().header;
            if header.toi == Some(Toi::FDT) {
                found = Some(header.extensions.cenc());
            }
            found.is_none()
        });
        assert_eq!(found, Some(encoding.map(ContentEncoding::cenc)), "{names} files");
    }
}

#[test]
fn a_peer_takes_compressed_files_and_a_compressed_table() {
    let _air = air();
    let directory = tempfile::tempdir().unwrap();
    let mut files = files_of(&[0, 1, 100_000]);
    // One is compressed in memory, the other in a file.
    files.insert("short text".to_owned(), text(50_000));
    files.insert("long text".to_owned(), text(8 * MIB));
    let addressing = addressing();
    let listening = Listening::join(&addressing);
    let mut flute = FluteFormat::default();
    flute.content_encoding = ContentEncoding::Gzip;
    let _sender = FontanaSender::start(&addressing, write(&files, directory.path()), |options| {
        options.format(Format::Flute(flute))
    });
    let outcomes = listening.receive(files.len(), with_a_large_cache(), Losing::permille(0));
    assert_same(&complete(outcomes), &files);
}
