//! Plain FLUTE between two Fontanas, also with options that the peer does not support.

use super::fontana_side::{
    Files, FontanaReceiver, FontanaSender, MIB, Received, addressing, air, assert_same, files_of,
    text, write,
};
use fontana::wire::ContentEncoding;
use fontana::{Code, FluteFormat, Format, Ordering, Outcome, SenderBuilder, SimulatedLoss};

fn transfer(
    files: &Files,
    loss: f64,
    change: impl FnOnce(SenderBuilder) -> SenderBuilder,
) -> Received {
    let _air = air();
    let directory = tempfile::tempdir().unwrap();
    let addressing = addressing();
    let receiver = FontanaReceiver::join(&addressing, |options| {
        options.simulated_loss(Some(SimulatedLoss { probability: loss, seed: 1 }))
    });
    let _sender = FontanaSender::start(&addressing, write(files, directory.path()), change);
    receiver.run()
}

#[track_caller]
fn assert_complete(received: &Received, files: &Files) {
    assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
    assert_same(&received.files, files);
}

#[test]
fn a_lossy_receiver_completes_with_either_code_in_either_order() {
    let files = files_of(&[0, 1, 3 * MIB]);
    for code in [Code::None, Code::ReedSolomon, Code::Raptor, Code::RaptorQ] {
        for ordering in [Ordering::Even, Ordering::Sequential { repair_permille: 200 }] {
            let received = transfer(&files, 0.1, |options| {
                options.code(code).ordering(ordering).block_symbols(500)
            });
            assert_complete(&received, &files);
        }
    }
}

#[test]
fn more_files_than_a_packet_can_name_arrive_with_empty_ones_among_them() {
    let files = (0..300).map(|n| (format!("file {n}"), vec![n as u8; n % 3])).collect();
    assert_complete(&transfer(&files, 0.1, |options| options), &files);
}

#[test]
fn a_tree_arrives_with_its_directories() {
    let names = ["tree/a/b/c", "tree/a/d", "tree/e", "beside"];
    let files = names.map(|name| (name.to_owned(), name.repeat(500).into_bytes())).into();
    assert_complete(&transfer(&files, 0.1, |options| options), &files);
}

#[test]
fn a_plain_receiver_takes_the_files_of_a_session_with_a_manifest() {
    let files = files_of(&[1, MIB]);
    assert_complete(&transfer(&files, 0.1, |options| options.format(Format::default())), &files);
}

#[test]
fn compressed_files_arrive_as_they_were() {
    let mut files = files_of(&[0, 1, 100_000]);
    files.insert("short text".to_owned(), text(50_000));
    files.insert("long text".to_owned(), text(8 << 20));
    let mut flute = FluteFormat::default();
    flute.content_encoding = ContentEncoding::Gzip;
    let _air = air();
    let directory = tempfile::tempdir().unwrap();
    let addressing = addressing();
    let receiver = FontanaReceiver::join(&addressing, |options| options);
    let _sender = FontanaSender::start(&addressing, write(&files, directory.path()), |options| {
        options.format(Format::Flute(flute))
    });
    let received = receiver.run();
    assert_complete(&received, &files);
    let sent: u64 = received.summary.objects.iter().map(|object| object.bytes).sum();
    assert!(sent < 4 << 20, "{sent} bytes");
}
