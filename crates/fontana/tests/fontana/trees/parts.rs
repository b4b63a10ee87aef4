//! A part of a tree: only what was selected is received.

use super::*;
use fontana::{ErrorKind, ReceivedPart, SendEvent};

/// Small pictures and notes in one object, and two large files with an object each.
fn plant_parts(root: &Path) {
    for place in ["pictures/old", "empty"] {
        fs::create_dir_all(root.join(place)).unwrap();
    }
    for number in 0..20 {
        let place = root.join(["pictures", "pictures/old"][number % 2]);
        fs::write(place.join(format!("{number}.jpg")), noise(3_000, number as u64)).unwrap();
        fs::write(root.join(format!("{number}.txt")), noise(500, number as u64)).unwrap();
    }
    symlink("0.jpg", root.join("pictures/first.jpg")).unwrap();
    fs::write(root.join("pictures/empty.jpg"), "").unwrap();
    fs::write(root.join("one.raw"), noise(2_000_000, 1)).unwrap();
    fs::write(root.join("two.raw"), noise(1_500_000, 2)).unwrap();
    set_mode(&root.join("pictures/old"), 0o750);
    for place in ["pictures/old", "pictures", "empty", ""] {
        set_time(&root.join(place), 900_000_000, 5);
    }
}

/// In blocks of 0.7 MB, so that the large files are objects of their own.
fn send_parts(root: &Path, addressing: &Addressing) -> Sending {
    let mut options = send_options(vec![root.to_owned()], addressing);
    options = options.block_symbols(500);
    Sending::start(options)
}

/// Receives what matches.
fn only(patterns: &[&str], ticket: &Ticket, options: ReceiverBuilder) -> ReceiverBuilder {
    let mut reception = FontanaReception::from_ticket(ticket);
    reception.only = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
    options.format(ReceiveFormat::Fontana(reception))
}

fn names(root: &Path) -> Vec<PathBuf> {
    look(root).into_keys().filter(|name| !name.as_os_str().is_empty()).collect()
}

#[test]
fn only_what_matches_is_received_with_the_directories_that_it_needs() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    plant_parts(&root);
    let addressing = addressing(20);
    let sending = send_parts(&root, &addressing);
    let into = directory.path().join("into");
    let options = receive_options(&sending.ticket, &addressing, &into);
    let mut part = ReceivedPart::default();
    let summary = receive_until(only(&["*.jpg"], &sending.ticket, options), |event| {
        if let ReceiveEvent::Selected(selected) = event {
            part = selected;
        }
        false
    });
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    assert_eq!((part.files, part.bytes, part.objects), (21, 60_000, 1));
    let is_in = |name: &Path| name.starts_with("pictures");
    let mut expected = look(&root);
    expected.retain(|name, _| is_in(name));
    let mut received = look(&into.join("tree"));
    received.remove(Path::new(""));
    assert!(received == expected, "{:?}", names(&into));
    assert_eq!(fs::read_dir(&into).unwrap().count(), 1, "staging is gone");
    // The bundle, and not the megabytes beside it.
    let bundle: u64 = 20 * 3_500;
    assert!(summary.progress.source_symbols < 2 * bundle / 1_344, "{summary:?}");
    assert!(summary.progress.reception_inefficiency().unwrap() < 1.6, "{summary:?}");
    sending.end();
}

#[test]
fn a_part_that_was_interrupted_is_gone_on_with_by_another_choice() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    plant_parts(&root);
    let addressing = addressing(21);
    let sending = send_parts(&root, &addressing);
    // The sender gives this file up: however late the receiver is stopped, something is missing.
    fs::write(root.join("one.raw"), "another file").unwrap();
    let into = directory.path().join("into");
    let options = receive_options(&sending.ticket, &addressing, &into);
    let first = only(&["*.jpg", "/tree/one.raw"], &sending.ticket, options.clone());
    let summary = receive_until(first, |event| {
        let ReceiveEvent::ObjectDone(report) = event else { return false };
        let is_bundle = report.names.iter().any(|name| name.ends_with(".jpg"));
        assert!(
            !is_bundle || report.names.iter().all(|name| !name.ends_with(".txt")),
            "{report:?}"
        );
        is_bundle
    });
    assert_eq!(summary.outcome, Outcome::Interrupted, "{summary:?}");
    assert!(into.join("tree/pictures/0.jpg").exists() && !into.join("tree/0.txt").exists());
    // The notes came with the pictures: they are there without being received again.
    let summary = receive(only(&["*.txt"], &sending.ticket, options.clone()));
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    assert_eq!(summary.progress.stats.fresh, 0, "{:?}", summary.progress.stats);
    for number in 0..20 {
        let name = format!("{number}.txt");
        assert!(
            fs::read(into.join("tree").join(&name)).unwrap() == fs::read(root.join(&name)).unwrap()
        );
    }
    assert_eq!(fs::read_dir(&into).unwrap().count(), 1, "staging is gone");
    sending.sender.stop();
    assert_eq!(sending.sender.join().unwrap().outcome, Outcome::SourceChanged);
}

#[test]
fn a_file_that_changes_while_it_is_sent_costs_no_other() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    fs::create_dir(&root).unwrap();
    for number in 0..4_u64 {
        fs::write(root.join(format!("{number}.raw")), noise(1_000_000, number)).unwrap();
    }
    let addressing = addressing(24);
    let options = send_options(vec![root.clone()], &addressing).block_symbols(500);
    let sending = Sending::start(options.rate(Rate::bytes_per_second(2_000_000)));
    assert_eq!(sending.manifest.objects().len(), 4);
    let mut bytes = noise(1_000_000, 2);
    bytes[999_999] ^= 1;
    fs::write(root.join("2.raw"), bytes).unwrap();
    // It is given up at the latest when it is read for the next pass.
    let failed = sending.sender.events().find_map(|event| match event {
        SendEvent::Failed(error) => Some(error.to_string()),
        _ => None,
    });
    assert!(failed.as_ref().is_some_and(|error| error.contains("2.raw")), "{failed:?}");

    let into = directory.path().join("into");
    let mut done = 0;
    let options = receive_options(&sending.ticket, &addressing, &into);
    let summary = receive_until(options, |event| {
        done += u32::from(matches!(event, ReceiveEvent::ObjectDone(_)));
        done == 3
    });
    assert_eq!((summary.outcome, done), (Outcome::Interrupted, 3));
    for number in 0..4 {
        let name = format!("{number}.raw");
        let received = fs::read(into.join("tree").join(&name)).ok();
        let expected = (number != 2).then(|| fs::read(root.join(&name)).unwrap());
        assert!(received == expected, "{name}");
    }
    sending.sender.stop();
    assert_eq!(sending.sender.join().unwrap().outcome, Outcome::SourceChanged);
}

/// Small files share an object, which is sent from a copy. Without room for one they take those of
/// their blocks with them.
#[test]
fn small_files_that_vanish_or_change_while_they_are_sent_arrive_as_they_were() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    for (number, scratch) in [(1, None), (2, Some(0))] {
        let root = directory.path().join(number.to_string());
        fs::create_dir(&root).unwrap();
        let path = |file: u64| root.join(file.to_string());
        let bytes = |file: u64| noise(20_000, file);
        (0..40).for_each(|file| fs::write(path(file), bytes(file)).unwrap());
        let addressing = addressing(60 + number);
        let options = send_options(vec![root.clone()], &addressing).block_symbols(100);
        let sending = Sending::start(options.scratch(scratch));
        assert_eq!(sending.manifest.objects().len(), 1);
        if scratch.is_none() {
            fs::remove_file(path(3)).unwrap();
        }
        fs::write(path(17), noise(20_000, 99)).unwrap();
        fs::write(path(25), "short").unwrap();
        let into = directory.path().join("into");
        let options = receive_options(&sending.ticket, &addressing, &into);
        if scratch == Some(0) {
            let summary = receive(options.timeout(Some(Duration::from_secs(4))));
            assert_eq!(summary.outcome, Outcome::Incomplete, "{:?}", summary.failures);
            let received = |file: &u64| fs::read(into.join(format!("{number}/{file}"))).ok();
            let given: Vec<_> = (0..40).filter(|file| received(file).is_some()).collect();
            assert!(given.iter().all(|file| received(file) == Some(bytes(*file))));
            assert!(given.len() >= 20, "{given:?}");
            assert!(!given.contains(&17) && !given.contains(&25), "{given:?}");
            sending.sender.stop();
            let failures = sending.sender.join().unwrap().failures;
            assert_eq!(failures.len(), 2, "{failures:?}");
            continue;
        }
        let summary = receive(options);
        assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
        for file in 0..40 {
            let received = into.join(number.to_string()).join(file.to_string());
            assert!(fs::read(received).unwrap() == bytes(file), "{file}");
        }
        sending.end();
    }
}

#[test]
fn repair_symbols_of_a_part_are_resumed_with_their_object() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    fs::create_dir(&root).unwrap();
    for number in 0..3_u64 {
        fs::write(root.join(format!("{number}.raw")), noise(1_500_000, number)).unwrap();
    }
    let addressing = addressing(23);
    let options = send_options(vec![root], &addressing).block_symbols(500);
    let sending = Sending::start(options.rate(Rate::bytes_per_second(2_000_000)));
    assert_eq!(sending.manifest.objects().len(), 3);
    let into = directory.path().join("into");
    let options = receive_options(&sending.ticket, &addressing, &into)
        .simulated_loss(Some(SimulatedLoss { probability: 0.5, seed: 4 }));
    // Half of their source symbols are lost: the others come with repair symbols.
    let first = only(&["1.raw", "2.raw"], &sending.ticket, options.clone());
    let summary = receive_until(first, |event| match event {
        ReceiveEvent::Progress(progress) => {
            let of_two = progress.source_symbols;
            of_two > 0 && progress.stats.fresh * 100 >= of_two * 65
        }
        _ => false,
    });
    assert_eq!(summary.outcome, Outcome::Interrupted, "{summary:?}");
    let (summary, missing) = receive_what_is_missing(options);
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    assert_eq!(summary.progress.stats.corrupt_blocks, 0, "{:?}", summary.progress.stats);
    // The third file, and a third of the others.
    let of_three = summary.progress.source_symbols;
    assert!((of_three / 3..of_three * 3 / 5).contains(&missing), "{missing} of {of_three}");
    sending.end();
}

#[test]
fn a_choice_of_nothing_is_refused_with_names() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    plant_parts(&root);
    let addressing = addressing(22);
    let sending = send_parts(&root, &addressing);
    let into = directory.path().join("into");
    let options = receive_options(&sending.ticket, &addressing, &into);
    let summary = receive(only(&["*.png"], &sending.ticket, options.clone()));
    assert_eq!(summary.outcome, Outcome::Usage, "{summary:?}");
    let error = summary.failures[0].to_string();
    assert!(error.contains("tree/0.txt") && error.contains(" and 43 more"), "{error}");
    assert_eq!(fs::read_dir(&into).unwrap().count(), 0);
    let wrong = only(&["["], &sending.ticket, options).prepare().err().unwrap();
    assert!(wrong.kind() == ErrorKind::Pattern && wrong.outcome() == Outcome::Usage, "{wrong}");
    sending.end();
}
