//! The peer sends, Fontana receives.

use super::fontana_side::{
    Files, FontanaReceiver, Losing, MIB, Received, SIZES, addressing, air, assert_same, files_of,
    noise, text,
};
use super::peer::{
    Background, Sending, carousel, config, no_code, object, packets, publish_all, raptor, raptorq,
    reed_solomon, send, sender, sender_of, small_block,
};
use flute::core::{Oti, lct::Cenc};
use flute::sender::{Config, FdtXmlProfile, Profile, TOIMaxLength, TransferConfig};
use fontana::wire::{Packet, Toi};
use fontana::{Outcome, Verified};
use std::time::{Duration, SystemTime};

/// Sends files from the peer to Fontana, which listens first.
fn transfer(files: &Files, oti: &Oti, config: &Config, cenc: Cenc, losing: Losing) -> Received {
    let _air = air();
    let addressing = addressing();
    let receiver = FontanaReceiver::join(&addressing, |options| options);
    let _sender = send(&addressing, sender_of(&addressing, files, oti, config, cenc), losing);
    receiver.run()
}

#[track_caller]
fn assert_complete(received: &Received, files: &Files) {
    let summary = &received.summary;
    assert_eq!(summary.outcome, Outcome::Complete, "{summary:?}");
    assert_eq!(summary.verified, Some(Verified::None));
    assert_eq!(summary.objects.len(), files.len());
    assert_same(&received.files, files);
}

#[test]
fn every_size_arrives_without_a_code() {
    let files = files_of(&SIZES);
    let lossless = Losing::permille(0);
    assert_complete(&transfer(&files, &no_code(), &config(), Cenc::Null, lossless), &files);
}

#[test]
fn every_size_arrives_with_raptorq() {
    let files = files_of(&SIZES);
    let lossless = Losing::permille(0);
    assert_complete(&transfer(&files, &raptorq(1), &config(), Cenc::Null, lossless), &files);
}

/// This sender sends the source symbols, and says how many repair symbols it could send.
#[test]
fn files_with_raptor_arrive() {
    let files = files_of(&[100_000, MIB]);
    let received = transfer(&files, &raptor(), &config(), Cenc::Null, Losing::permille(0));
    assert_complete(&received, &files);
}

#[test]
fn every_size_arrives_with_reed_solomon_under_either_number() {
    let files = files_of(&[0, 1, 100_000, 5 * MIB]);
    for oti in [reed_solomon(), small_block()] {
        let received = transfer(&files, &oti, &config(), Cenc::Null, Losing::permille(0));
        assert_complete(&received, &files);
    }
}

#[test]
fn a_tenth_of_the_datagrams_is_lost_and_everything_arrives() {
    let files = files_of(&[0, 1, 5 * MIB]);
    for oti in [no_code(), reed_solomon(), small_block(), raptorq(1)] {
        let received = transfer(&files, &oti, &config(), Cenc::Null, Losing::permille(100));
        assert_complete(&received, &files);
    }
}

#[test]
fn directories_of_a_location_are_made() {
    let names = ["a/b/c/deep", "a/b/flat", "with blank/\u{fc}ml\u{e4}ut", "top"];
    let files = names.map(|name| (name.to_owned(), noise(20_000, name.len() as u64))).into();
    let received = transfer(&files, &no_code(), &config(), Cenc::Null, Losing::permille(50));
    assert_complete(&received, &files);
    let received = transfer(&files, &raptorq(1), &config(), Cenc::Gzip, Losing::permille(0));
    assert_complete(&received, &files);
}

#[test]
fn sub_blocks_are_put_together_also_when_symbols_are_lost() {
    let files = files_of(&[1, 4095, MIB + 1]);
    for sub_blocks in [2, 3, 350] {
        let received =
            transfer(&files, &raptorq(sub_blocks), &config(), Cenc::Null, Losing::permille(50));
        assert_complete(&received, &files);
    }
}

#[test]
fn compressed_files_and_compressed_tables_are_decompressed() {
    let mut files = files_of(&[0, 1, 100_000]);
    files.insert("text".to_owned(), text(MIB));
    for cenc in [Cenc::Zlib, Cenc::Deflate, Cenc::Gzip] {
        let config = Config { fdt_cenc: cenc, ..config() };
        let received = transfer(&files, &no_code(), &config, cenc, Losing::permille(0));
        assert_complete(&received, &files);
        let sent: u64 = received.summary.objects.iter().map(|object| object.bytes).sum();
        assert!(sent < 500_000, "{cenc:?}: {sent} bytes are not compressed");
    }
}

#[test]
fn the_first_version_of_flute_is_understood() {
    let files = files_of(&[0, 1, 100_000]);
    let config = Config { profile: Profile::RFC3926, ..config() };
    assert_complete(
        &transfer(&files, &no_code(), &config, Cenc::Null, Losing::permille(0)),
        &files,
    );
}

#[test]
fn the_table_of_3gpp_is_understood() {
    let files = files_of(&[1, 100_000]);
    let config = Config { fdt_xml_profile: FdtXmlProfile::Ts26346L6, ..config() };
    assert_complete(
        &transfer(&files, &no_code(), &config, Cenc::Null, Losing::permille(0)),
        &files,
    );
}

#[test]
fn object_numbers_may_have_any_width() {
    let files = files_of(&[0, 1, 10_000]);
    for first in [1, 0xFFFF, 0xFFFF_FFF0, 1 << 40, (1 << 112) - 10] {
        let config = Config {
            toi_max_length: TOIMaxLength::ToiMax112,
            toi_initial_value: Some(first),
            ..config()
        };
        let received = transfer(&files, &no_code(), &config, Cenc::Null, Losing::permille(0));
        assert_complete(&received, &files);
    }
}

#[test]
fn transmission_information_in_the_table_alone_is_enough() {
    let files = files_of(&[0, 1, 100_000]);
    for oti in [no_code(), reed_solomon(), small_block(), raptorq(1)] {
        let oti = Oti { inband_fti: false, ..oti };
        let received = transfer(&files, &oti, &config(), Cenc::Null, Losing::permille(0));
        assert_complete(&received, &files);
    }
}

#[test]
fn packets_that_come_before_the_table_are_not_lost() {
    let files = files_of(&[0, 1, MIB]);
    for oti in [no_code(), raptorq(1)] {
        let _air = air();
        let addressing = addressing();
        let mut sender = sender(&addressing, &oti, &config());
        for (name, bytes) in &files {
            sender.add_object(0, object(name, bytes, TransferConfig::default())).unwrap();
        }
        publish_all(&mut sender);
        let is_table = |packet: &Vec<u8>| {
            Packet::parse(packet).is_ok_and(|packet| packet.header.toi == Some(Toi::FDT))
        };
        let (table, content): (Vec<_>, Vec<_>) = packets(sender).into_iter().partition(is_table);
        assert!(!table.is_empty() && content.len() > MIB / 1424);
        let receiver = FontanaReceiver::join(&addressing, |options| options);
        let mut sending = Sending::to(&addressing);
        // Once: what were forgotten would not come again.
        let _sender = Background::run(move |_| {
            content.iter().chain(&table).for_each(|packet| sending.send(packet));
        });
        assert_complete(&receiver.run(), &files);
    }
}

#[test]
fn a_packet_that_closes_the_session_is_revoked_by_the_next_one() {
    let files = files_of(&[1, MIB]);
    let _air = air();
    let addressing = addressing();
    let receiver = FontanaReceiver::join(&addressing, |options| options);
    let mut sender = sender_of(&addressing, &files, &no_code(), &config(), Cenc::Null);
    let mut sending = Sending::to(&addressing);
    let _sender = Background::run(move |stop| {
        for number in 0.. {
            let now = SystemTime::now();
            if stop.is_cancelled() {
                return;
            }
            // The first packet of all, as senders do to end what they left unfinished, and many
            // more.
            if number % 100 == 0 {
                sending.send(&sender.read_close_session(now));
            }
            match sender.read(now) {
                Some(packet) => sending.send(&packet),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    });
    assert_complete(&receiver.run(), &files);
}

#[test]
fn later_tables_add_files_until_there_is_no_new_one_for_a_while() {
    let files = files_of(&[100, 3 * MIB]);
    let _air = air();
    let addressing = addressing();
    let receiver = FontanaReceiver::join(&addressing, |options| {
        options.give_up_after_silence(Some(Duration::from_secs(2)))
    });
    let mut sender = sender(&addressing, &no_code(), &config());
    let mut files_to_add = files.clone().into_iter();
    let mut add = move |sender: &mut flute::sender::Sender| {
        if let Some((name, bytes)) = files_to_add.next() {
            sender.add_object(0, object(&name, &bytes, carousel(Cenc::Null))).unwrap();
            sender.publish(SystemTime::now()).unwrap();
        }
    };
    add(&mut sender);
    let mut sending = Sending::to(&addressing);
    let _sender = Background::run(move |stop| {
        for number in 0.. {
            if stop.is_cancelled() {
                return;
            }
            if number == 500 {
                add(&mut sender);
            }
            match sender.read(SystemTime::now()) {
                Some(packet) => sending.send(&packet),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    });
    assert_complete(&receiver.run(), &files);
}

#[test]
fn a_file_whose_code_is_not_known_is_refused_and_the_one_beside_it_arrives() {
    let files = files_of(&[100_000]);
    let _air = air();
    let addressing = addressing();
    let receiver = FontanaReceiver::join(&addressing, |options| options);
    let mut sender = sender(&addressing, &no_code(), &config());
    for (name, bytes) in &files {
        sender.add_object(0, object(name, bytes, carousel(Cenc::Null))).unwrap();
    }
    let oti = Oti::new_reed_solomon_rs2m(1400, 60, 4, 16).unwrap();
    let transfer = TransferConfig { oti: Some(oti), ..carousel(Cenc::Null) };
    sender.add_object(0, object("with RS 2m", &noise(100_000, 1), transfer)).unwrap();
    publish_all(&mut sender);
    let _sender = send(&addressing, sender, Losing::permille(0));
    let received = receiver.run();
    assert_eq!(received.summary.outcome, Outcome::Refused);
    assert_same(&received.files, &files);
    assert_eq!(received.summary.failures.len(), 1, "{:?}", received.summary);
    let failure = &received.summary.failures[0];
    assert!(failure.to_string().contains("FEC Encoding ID 2"), "{failure}");
    assert_eq!(received.failed, ["file:///with%20RS%202m"]);
}

#[test]
fn a_file_whose_md5_is_wrong_is_not_put_under_its_name() {
    let files = files_of(&[100_000]);
    for cenc in [Cenc::Null, Cenc::Gzip] {
        let _air = air();
        let addressing = addressing();
        let receiver = FontanaReceiver::join(&addressing, |options| options);
        let mut sender = sender(&addressing, &no_code(), &config());
        for (name, bytes) in &files {
            sender.add_object(0, object(name, bytes, carousel(Cenc::Null))).unwrap();
        }
        let mut wrong = object("wrong", &noise(50_000, 1), carousel(cenc));
        wrong.md5 = object("other", &noise(50_000, 2), carousel(cenc)).md5;
        sender.add_object(0, wrong).unwrap();
        publish_all(&mut sender);
        let _sender = send(&addressing, sender, Losing::permille(0));
        let received = receiver.run();
        assert_eq!(received.summary.outcome, Outcome::VerificationFailed);
        assert_same(&received.files, &files);
        assert_eq!(received.failed, ["wrong"]);
    }
}
