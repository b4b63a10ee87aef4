//! Sessions that are received until the receiver is stopped, and those that a receiver of Fontana
//! finds.

use super::sender::{Listener, SentFile, pass, table_of, xml_table};
use crate::support::world::TSI;
use fontana_proto::{Expectation, MetadataMode, ReceiverEvent};
use fontana_wire::{Fdt, FdtFile, HeaderFields, Toi};
use std::time::Duration;

#[test]
fn three_runs_of_a_sender_that_says_complete_give_three_files() {
    let mut listener = Listener::new();
    listener.receiver.endpoint.watch_tables();
    let runs = [("a", 1), ("b", 2), ("c", 3)];
    let runs = runs.map(|(name, seed)| SentFile::new(1, name, 900, seed));
    for (run, file) in runs.iter().enumerate() {
        let file = if run == 1 { file.clone().without_md5() } else { file.clone() };
        listener.repeat(&pass(1, std::slice::from_ref(&file), true), 3);
        let mut close = Vec::new();
        HeaderFields { close_session: true, ..HeaderFields::new(TSI, None) }.emit(&mut close);
        listener.hear(&close);
        listener.wait(Duration::from_secs(60));
        assert!(listener.has(&file), "{run}: {:?}", listener.events());
        assert!(listener.receiver.complete_at.is_none(), "{run}: {:?}", listener.events());
    }
    assert!(listener.conclude());
    assert!(runs.iter().all(|file| listener.has(file)));
}

/// A receiver of Fontana's sessions that is not to receive a certain one.
fn receiver_of_fontana() -> Listener {
    Listener::configured(|config| {
        let (metadata, expectation) = (MetadataMode::Manifest, Expectation::default());
        fontana_proto::ReceiverConfig { metadata, expectation, ..config }
    })
}

fn found(listener: &Listener) -> usize {
    listener.count(|event| matches!(event, ReceiverEvent::FluteFound { files: 1, .. }))
}

#[test]
fn plain_flute_is_found_after_three_seconds_and_once() {
    let packets = pass(1, &[SentFile::new(1, "a", 900, 1)], false);
    let mut listener = receiver_of_fontana();
    while listener.now.as_nanos() < 2_900_000_000 {
        listener.hear_all(&packets);
    }
    assert_eq!(found(&listener), 0);
    listener.repeat(&packets, 2);
    assert_eq!(found(&listener), 1);
    listener.repeat(&packets, 60);
    assert_eq!(found(&listener), 1);
}

#[test]
fn a_session_with_a_sign_of_fontana_is_not_found() {
    let file = SentFile::new(1, "a", 900, 1);
    let packets = pass(1, std::slice::from_ref(&file), false);
    for toi in [Toi::HEAD, Toi::MANIFEST, Toi(0xFFFF_FFF0)] {
        let mut sign = Vec::new();
        HeaderFields::new(TSI, Some(toi)).emit(&mut sign);
        sign.extend([0; 12]);
        let mut listener = receiver_of_fontana();
        listener.hear_all(&packets);
        listener.hear(&sign);
        listener.repeat(&packets, 10);
        assert_eq!(found(&listener), 0, "{toi}");
    }
    let content_type = Some(FdtFile::BUNDLE_TYPE.to_owned());
    let of_fontana = FdtFile { content_type, ..file.described() };
    let table = Fdt { files: vec![of_fontana], ..Fdt::default() };
    for packets in [table_of(1, &table), xml_table(1, "<FDT-Instance/>"), file.packets()] {
        let mut listener = receiver_of_fontana();
        listener.repeat(&packets, 10);
        assert_eq!(found(&listener), 0);
    }
}

/// Any host can send tables, also in the names of others.
#[test]
fn few_sessions_are_watched_and_forgotten_when_they_are_silent() {
    let packets = pass(1, &[SentFile::new(1, "a", 900, 1)], false);
    let mut listener = receiver_of_fontana();
    for tsi in 100..200_u32 {
        for packet in &packets {
            let mut other = packet.clone();
            other[8..12].copy_from_slice(&tsi.to_be_bytes());
            listener.hear(&other);
        }
    }
    listener.repeat(&packets, 10);
    assert_eq!(found(&listener), 0);
    listener.wait(Duration::from_secs(31));
    listener.repeat(&packets, 10);
    assert_eq!(found(&listener), 1);
}
