//! Content that the directory already has is not received again.

use super::*;

/// Blocks of the files below: at most 500 symbols of 1 344 bytes, 497 in the image.
const BLOCK_SYMBOLS: u64 = 500;

fn send_blocks(root: &Path, addressing: &Addressing) -> Sending {
    let mut options = send_options(vec![root.to_owned()], addressing);
    options = options.block_symbols(BLOCK_SYMBOLS as u32);
    Sending::start(options)
}

/// Twenty small files, an image of six blocks with a hole, one that is empty, and a link.
fn plant_images(root: &Path) {
    fs::create_dir(root).unwrap();
    for number in 0..20 {
        fs::write(root.join(format!("{number:02}.txt")), noise(2_000, number)).unwrap();
    }
    let image = fs::File::create(root.join("image")).unwrap();
    image.write_all_at(&noise(2_000_000, 77), 0).unwrap();
    image.write_all_at(&noise(2_000_000, 78), 3_000_000).unwrap();
    fs::write(root.join("empty"), "").unwrap();
    symlink("image", root.join("latest")).unwrap();
    set_mode(&root.join("image"), 0o640);
    set_time(&root.join("image"), 900_000_000, 7);
    set_time(root, 900_000_000, 5);
}

fn skipping(sending: &Sending, options: &ReceiverBuilder, overwrite: bool) -> ReceiverBuilder {
    let mut reception = FontanaReception::from_ticket(&sending.ticket);
    reception.skip_existing = true;
    options.clone().overwrite(overwrite).format(ReceiveFormat::Fontana(reception))
}

#[test]
fn a_tree_that_is_all_there_costs_no_symbol_and_its_files_are_not_touched() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    plant_images(&root);
    let addressing = addressing(30);
    let sending = send_blocks(&root, &addressing);
    let into = directory.path().join("into");
    let options = receive_options(&sending.ticket, &addressing, &into);
    assert_eq!(receive(options.clone()).outcome, Outcome::Complete);
    let inode = || fs::metadata(into.join("tree/image")).unwrap().ino();
    let before = inode();
    // Mode and time prove nothing, and are corrected.
    set_mode(&into.join("tree/image"), 0o600);
    set_time(&into.join("tree/image"), 1, 1);
    let mut compared = (0, 0);
    let summary = receive_until(skipping(&sending, &options, false), |event| {
        if let ReceiveEvent::Compared { bytes, of } = event {
            compared = (bytes, of);
        }
        false
    });
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    assert_eq!(summary.progress.stats.fresh, 0, "{:?}", summary.progress.stats);
    assert_eq!(inode(), before, "it is the same file");
    assert!(compared.0 == compared.1 && compared.1 > 4_000_000, "{compared:?}");
    let mut received = look(&into.join("tree"));
    let mut expected = look(&root);
    // The directory was there, and stays as it is.
    assert!(received.remove(Path::new("")).is_some() && expected.remove(Path::new("")).is_some());
    assert!(received == expected);
    assert_eq!(fs::read_dir(&into).unwrap().count(), 1, "staging is gone");
    sending.end();
}

#[test]
fn a_changed_block_costs_its_symbols_and_a_changed_hole_its_file() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    plant_images(&root);
    let addressing = addressing(31);
    let sending = send_blocks(&root, &addressing);
    let into = directory.path().join("into");
    let options = receive_options(&sending.ticket, &addressing, &into);
    assert_eq!(receive(options.clone()).outcome, Outcome::Complete);
    let image = into.join("tree/image");
    let change = |at: u64| {
        let file = fs::OpenOptions::new().write(true).open(&image).unwrap();
        file.write_all_at(b"changed", at).unwrap();
    };
    let agrees = |name: &str| {
        assert!(
            fs::read(into.join(name)).unwrap()
                == fs::read(root.parent().unwrap().join(name)).unwrap()
        );
    };

    change(1_000_000);
    let refused = receive(skipping(&sending, &options, false));
    assert_eq!(refused.outcome, Outcome::Refused, "{:?}", refused.failures);
    assert_eq!(refused.progress.stats.fresh, 0, "before anything was received");
    let (summary, missing) = receive_what_is_missing(skipping(&sending, &options, true));
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    assert_eq!(missing, 497, "one block");
    agrees("tree/image");

    // No block covers the hole: all blocks agree, and the file differs.
    change(2_500_000);
    let summary = receive(skipping(&sending, &options, true));
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    assert_eq!(summary.progress.stats.fresh, 0);
    agrees("tree/image");

    // One of the small files is missing: the others of its bundle stay as they are.
    fs::remove_file(into.join("tree/03.txt")).unwrap();
    fs::write(into.join("tree/04.txt"), "other").unwrap();
    let inode = || fs::metadata(into.join("tree/image")).unwrap().ino();
    let before = inode();
    let (summary, missing) = receive_what_is_missing(skipping(&sending, &options, true));
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    assert_eq!(missing, 30, "forty thousand bytes");
    ["tree/03.txt", "tree/04.txt", "tree/05.txt"].into_iter().for_each(agrees);
    assert_eq!(inode(), before);
    sending.end();
}

/// Small files share a block. Whether one is the same is not known if another is missing.
#[test]
fn equal_files_that_share_a_block_with_a_missing_one_are_not_in_the_way() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    plant_images(&root);
    let addressing = addressing(75);
    let sending = send_blocks(&root, &addressing);
    let into = directory.path().join("into");
    let options = receive_options(&sending.ticket, &addressing, &into);
    assert_eq!(receive(options.clone()).outcome, Outcome::Complete);
    fs::remove_file(into.join("tree/03.txt")).unwrap();
    let summary = receive(skipping(&sending, &options, false));
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    assert!(fs::read(into.join("tree/03.txt")).unwrap() == fs::read(root.join("03.txt")).unwrap());

    // One of them has other bytes: it is refused alone.
    fs::remove_file(into.join("tree/03.txt")).unwrap();
    fs::write(into.join("tree/04.txt"), noise(2_000, 99)).unwrap();
    let summary = receive(skipping(&sending, &options, false));
    sending.end();
    let failures: Vec<_> = summary.failures.iter().map(ToString::to_string).collect();
    assert_eq!(summary.outcome, Outcome::Refused, "{failures:?}");
    assert!(failures.iter().all(|failure| failure.contains("04.txt")), "{failures:?}");
    assert!(fs::read(into.join("tree/04.txt")).unwrap() == noise(2_000, 99), "it stays");
    assert!(fs::read(into.join("tree/03.txt")).unwrap() == fs::read(root.join("03.txt")).unwrap());
}

#[test]
fn what_was_copied_is_kept_over_an_interruption_and_verified_again() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    plant_images(&root);
    let addressing = addressing(32);
    // What is missing takes two seconds, however late the receiver is stopped.
    let slow = Rate::bytes_per_second(1_000_000);
    let options = send_options(vec![root.clone()], &addressing).block_symbols(500).rate(slow);
    let sending = Sending::start(options);
    let into = directory.path().join("into");
    let options = receive_options(&sending.ticket, &addressing, &into);
    fs::create_dir_all(into.join("tree")).unwrap();
    // Half of the image is right, and is then removed.
    let mut half = fs::read(root.join("image")).unwrap();
    half[2_000_000..].fill(1);
    fs::write(into.join("tree/image"), half).unwrap();
    let mut resumed = 0;
    let summary = receive_until(skipping(&sending, &options, true), |event| {
        let ReceiveEvent::Resumed { symbols, .. } = event else { return false };
        resumed = symbols;
        true
    });
    assert_eq!(summary.outcome, Outcome::Interrupted, "{summary:?}");
    assert!((2 * 497..=3 * 497).contains(&resumed), "{resumed}");
    fs::remove_file(into.join("tree/image")).unwrap();
    let (summary, missing) = receive_what_is_missing(options);
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    let all = summary.progress.source_symbols;
    assert!(missing <= all - resumed, "{missing} of {all}, and {resumed} were kept");
    assert!(fs::read(into.join("tree/image")).unwrap() == fs::read(root.join("image")).unwrap());
    sending.end();
}
