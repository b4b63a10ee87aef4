//! `fontana send --manifest`: restarts and mirrors of a sender.

use crate::support::{Sender, arguments, noise, place, run, without_port};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Sends for a moment. Returns the events of the session and of its end.
fn send(words: &str, files: &[&Path]) -> (serde_json::Value, serde_json::Value) {
    let words = format!("send -i lo {words} --rate 20M --for 400ms --json");
    let sent = run(&arguments(&words, files)).expect(0);
    (sent.event("session"), sent.event("summary"))
}

#[test]
fn a_sender_that_finds_its_manifest_pours_repair_symbols_of_the_same_objects() {
    let directory = tempfile::tempdir().unwrap();
    let (file, empty) = (directory.path().join("file"), directory.path().join("empty"));
    let manifest = directory.path().join("manifest");
    std::fs::write(&file, noise(300_000, 1)).unwrap();
    std::fs::write(&empty, "").unwrap();
    let words = format!("--to {} --manifest {}", place(), manifest.display());
    let dry = format!("send -i lo {words} --dry-run");
    run(&arguments(&dry, &[&file, &empty])).expect(0);
    assert!(!manifest.exists(), "a dry run writes nothing");

    let (first, sent) = send(&words, &[&file, &empty]);
    assert_eq!(sent["source_symbols"], first["source_symbols"]);
    let bytes = std::fs::read(&manifest).unwrap();
    // Other defaults, and files in another order.
    for more in ["--symbol-size 512 --block-symbols 50 --content-version 7", ""] {
        let (again, sent) = send(&format!("{words} {more}"), &[&empty, &file]);
        for field in ["tsi", "manifest", "symbol_size", "objects", "bytes", "version"] {
            assert_eq!(again[field], first[field], "{more}: {field}");
        }
        let [before, now] = [&first, &again].map(|event| event["ticket"].as_str().unwrap());
        assert_eq!(without_port(now), without_port(before), "{more}");
        assert_eq!(sent["source_symbols"], 0, "{more}");
        assert!(sent["repair_symbols"].as_u64().unwrap() > 100, "{more}: {sent}");
    }
    assert_eq!(std::fs::read(&manifest).unwrap(), bytes);
}

#[test]
fn a_damaged_manifest_is_2() {
    let directory = tempfile::tempdir().unwrap();
    let (file, manifest) = (directory.path().join("file"), directory.path().join("manifest"));
    std::fs::write(&file, noise(300_000, 1)).unwrap();
    let words = format!("--to {} --manifest {}", place(), manifest.display());
    send(&words, &[&file]);
    let written = std::fs::read(&manifest).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(&manifest, bytes).unwrap();
        let words = format!("send -i lo {words} --for 50ms");
        let refused = run(&arguments(&words, &[&file])).expect(2);
        assert!(refused.stderr.contains("it is damaged"), "{}", refused.stderr);
    };
    // The label, the version and a block's hash: all manifests that are valid.
    for at in [8, 15, 20, written.len() / 2, written.len() - 33, written.len() - 1] {
        let mut damaged = written.clone();
        damaged[at] ^= 1;
        refused(&damaged);
    }
    refused(&written[..written.len() - 1]);
    refused(&[]);
    std::fs::write(&manifest, &written).unwrap();
    send(&words, &[&file]);
}

#[test]
fn a_ticket_stays_valid_when_its_sender_is_started_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, noise(1_000, 1)).unwrap();
    let ticket = |more: &str| {
        let words = format!("send -i lo --dry-run --json {more}");
        let session = run(&arguments(&words, &[&file])).expect(0).event("session");
        without_port(session["ticket"].as_str().unwrap()).to_owned()
    };
    assert_eq!(ticket(""), ticket(""));
    let numbered = ticket("--to 239.255.77.1/5");
    assert!(numbered.contains("/5?") && numbered != ticket(""), "{numbered}");
    assert_ne!(ticket("--flute"), ticket("--flute"), "nothing tells its receivers what is in it");
    let before = ticket("");
    std::fs::write(&file, noise(1_000, 2)).unwrap();
    assert_ne!(ticket(""), before, "other content is another session");
}

#[test]
fn a_new_ticket_is_drawn_once_and_stays() {
    let directory = tempfile::tempdir().unwrap();
    let (file, folder) = (directory.path().join("file"), directory.path().join("folder"));
    std::fs::write(&file, noise(1_000, 3)).unwrap();
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("file"), noise(1_000, 4)).unwrap();
    let to = place();
    let ticket = |what: &Path, words: &str| {
        let said = run(&arguments(&format!("send -i lo --to {to} {words}"), &[what])).expect(0);
        said.stdout.split('\'').nth(1).map(|ticket| without_port(ticket).to_owned())
    };
    for (what, words, once) in
        [(&file, "--dry-run", "--push 0"), (&folder, "--dry-run --watch", "--watch=100ms --for 1s")]
    {
        let before = ticket(what, words);
        assert_eq!(ticket(what, &format!("{words} --new-ticket")), None);
        assert_eq!(ticket(what, words), before, "a dry run changes nothing");
        let new = ticket(what, &format!("{once} --new-ticket"));
        assert!(new.is_some() && new != before, "{new:?}");
        assert_eq!(ticket(what, once), new);
        assert_eq!(ticket(what, words), new, "{before:?}");
    }
    let manifest = directory.path().join("manifest");
    let words = format!("send -i lo --to {to} --push 0 --manifest {}", manifest.display());
    run(&arguments(&words, &[&file])).expect(0);
    let refused = run(&arguments(&format!("{words} --new-ticket"), &[&file])).expect(2);
    assert!(refused.stderr.contains("has its key in"), "{}", refused.stderr);
}

#[test]
fn files_that_are_not_what_the_manifest_says_are_8() {
    let directory = tempfile::tempdir().unwrap();
    let (file, other) = (directory.path().join("file"), directory.path().join("other"));
    let manifest = directory.path().join("manifest");
    std::fs::write(&file, noise(30_000, 1)).unwrap();
    std::fs::write(&other, "of no interest").unwrap();
    let place = place();
    let words = format!("send -i lo --to {place} --for 50ms --manifest {}", manifest.display());
    run(&arguments(&words, &[&file])).expect(0);
    let modified = std::fs::metadata(&file).unwrap().modified().unwrap();
    let set_modified = |time: SystemTime| {
        std::fs::File::options().append(true).open(&file).unwrap().set_modified(time).unwrap();
    };
    let refused = |more: &str, files: &[&Path], what: &str| {
        let refused = run(&arguments(&format!("{words} {more}"), files)).expect(8);
        assert!(refused.stderr.contains(what), "{what:?} in {}", refused.stderr);
        assert!(refused.stderr.contains("begin anew"), "{}", refused.stderr);
    };
    refused("", &[&other], "not among the files");
    refused("", &[&file, &other], "no such name");

    // A copy with another time is read, and is accepted.
    set_modified(modified - Duration::from_secs(5));
    run(&arguments(&words, &[&file])).expect(0);
    std::fs::write(&file, noise(30_000, 2)).unwrap();
    refused("", &[&file], "its bytes are others");
    // Size and time agree, so only reading can find the change: before, or while it is sent.
    set_modified(modified);
    for words in [words.clone(), words.replace("50ms", "1m")] {
        let found = run(&arguments(&words, &[&file])).expect(8);
        let says = found.stderr.contains("its bytes are not those of its manifest");
        assert!(says, "{}", found.stderr);
    }
    std::fs::write(&file, noise(30_001, 1)).unwrap();
    set_modified(modified);
    refused("", &[&file], "30001 bytes instead of 30000");
}

/// The last block is compared after its last symbols are prepared, and before success is said.
#[test]
fn what_is_sent_once_and_is_not_what_the_manifest_says_is_8() {
    let directory = tempfile::tempdir().unwrap();
    let (file, manifest) = (directory.path().join("file"), directory.path().join("manifest"));
    std::fs::write(&file, noise(8_000_000, 1)).unwrap();
    let words = format!("send -i lo --to {} --push 0 --rate 2G --order sequential", place());
    let words = format!("{words} --block-symbols 200 --manifest {}", manifest.display());
    run(&arguments(&words, &[&file])).expect(0);
    run(&arguments(&words, &[&file])).expect(0);
    let modified = std::fs::metadata(&file).unwrap().modified().unwrap();
    let changed = std::fs::File::options().write(true).open(&file).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&changed, b"other", 7_999_995).unwrap();
    changed.set_modified(modified).unwrap();
    let found = run(&arguments(&words, &[&file])).expect(8);
    assert!(found.stderr.contains("its bytes are not those of its manifest"), "{}", found.stderr);
}

#[test]
fn a_tree_is_gone_on_with_as_long_as_everything_in_it_is_what_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, manifest) = (directory.path().join("tree"), directory.path().join("manifest"));
    std::fs::create_dir_all(tree.join("deep/empty")).unwrap();
    for number in 0..50 {
        std::fs::write(tree.join(format!("deep/{number}")), noise(1000 + number, 1)).unwrap();
    }
    std::os::unix::fs::symlink("deep/7", tree.join("link")).unwrap();
    let sparse = std::fs::File::create(tree.join("sparse")).unwrap();
    sparse.set_len(1 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"an end", (1 << 20) - 6).unwrap();
    let words = format!("--to {} --manifest {}", place(), manifest.display());
    let (first, _) = send(&words, &[&tree]);
    let (again, sent) = send(&words, &[&tree]);
    assert_eq!(again["manifest"], first["manifest"]);
    let [before, now] = [&first, &again].map(|event| event["ticket"].as_str().unwrap());
    assert_eq!(without_port(now), without_port(before));
    assert_eq!(sent["source_symbols"], 0);

    let refused = |what: &str| {
        let words = format!("send -i lo {words} --for 50ms");
        let refused = run(&arguments(&words, &[&tree])).expect(8);
        assert!(refused.stderr.contains(what), "{what:?} in {}", refused.stderr);
    };
    // A hole that became data: hashes cannot show it.
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"x", 1 << 19).unwrap();
    refused("sparse\" is not what the manifest says: its bytes are others");
    std::os::unix::fs::FileExt::write_all_at(&sparse, &[0], 1 << 19).unwrap();
    std::fs::write(tree.join("deep/7"), noise(1007, 2)).unwrap();
    refused("deep/7");
    std::fs::write(tree.join("deep/7"), noise(1007, 1)).unwrap();
    std::fs::create_dir(tree.join("new")).unwrap();
    refused("tree/new\" is not what the manifest says: there is no such name");
    std::fs::remove_dir(tree.join("new")).unwrap();
    std::fs::remove_file(tree.join("link")).unwrap();
    std::os::unix::fs::symlink("deep/8", tree.join("link")).unwrap();
    refused("it leads elsewhere");
    std::fs::remove_file(tree.join("link")).unwrap();
    std::fs::create_dir(tree.join("link")).unwrap();
    refused("it is something else");
}

#[test]
fn a_manifest_that_is_none_or_is_missing_is_2_and_one_that_cannot_be_written_is_6() {
    let directory = tempfile::tempdir().unwrap();
    let (file, manifest) = (directory.path().join("file"), directory.path().join("manifest"));
    std::fs::write(&file, noise(1_000, 1)).unwrap();
    let words = format!("send -i lo --to {} --for 50ms --manifest", place());
    let refused = |more: &str, manifest: &Path, code: i32, what: &str| {
        let words = format!("{words} {} {more}", manifest.display());
        let refused = run(&arguments(&words, &[&file])).expect(code);
        assert!(refused.stderr.contains(what), "{what:?} in {}", refused.stderr);
    };
    std::fs::write(&manifest, "FONTMAN").unwrap();
    refused("", &manifest, 2, "choose a new name");
    refused("--flute", &manifest, 2, "--flute with --manifest");
    refused("", &directory.path().join("missing/manifest"), 6, "cannot write the manifest");
}

/// A publisher gives a mirror a certificate, and not its key: receivers that know the publisher's
/// key receive from the mirror alone.
#[test]
fn a_mirror_with_a_certificate_sends_in_the_publishers_name() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let (file, manifest, into) = (at("file"), at("manifest"), at("into"));
    let (publisher, mirror, stranger) = (at("publisher"), at("mirror"), at("stranger"));
    std::fs::write(&file, noise(400_000, 1)).unwrap();
    let keygen = |path: &Path| run(&arguments("keygen", &[path])).expect(0).stdout;
    let (_, mirrors_key, _) = (keygen(&publisher), keygen(&mirror), keygen(&stranger));
    let words = format!("--to {} --sign {}", place(), publisher.display());
    let words = format!("{words} --manifest {}", manifest.display());
    let (published, _) = send(&words, &[&file]);
    let certify = |name: &str, lifetime: &str| {
        let words = format!("certify {} --mirror {mirrors_key}", manifest.display());
        let words = format!("{words} --sign {} --expires {lifetime} -o", publisher.display());
        let path = at(name);
        run(&arguments(&words, &[&path])).expect(0);
        path
    };
    let certificate = certify("certificate", "1h");
    let to = place();
    let mirrored = |certificate: &Path, key: &Path, more: &str| {
        let words = format!("--to {to} --sign {} --rate 20M {more}", key.display());
        let words = format!("{words} --certificate {}", certificate.display());
        format!("{words} --manifest {}", manifest.display())
    };
    // With another key, another manifest, or a certificate that was changed, it does not start.
    let refused = |words: &str, code: i32, message: &str| {
        let refused = run(&arguments(&format!("send -i lo {words}"), &[&file])).expect(code);
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
    };
    refused(&mirrored(&certificate, &stranger, ""), 2, "the certificate is for another key");
    let changed = at("changed");
    let text = std::fs::read_to_string(&certificate).unwrap();
    std::fs::write(&changed, text.replace("fontana-certificate-1 4", "fontana-certificate-1 5"))
        .unwrap();
    refused(&mirrored(&changed, &mirror, ""), 7, "the certificate");
    let group = at("group");
    run(&arguments("keygen --group", &[&group])).expect(0);
    let sealed = format!("--group-key {}", group.display());
    refused(&mirrored(&certificate, &mirror, &sealed), 2, "--certificate");
    // It runs twice, and the second run is received as well.
    for run_number in 0..2 {
        let sender = Sender::start(&mirrored(&certificate, &mirror, ""), &[&file]);
        let key = published["ticket"].as_str().unwrap().split("key=").nth(1).unwrap();
        assert!(sender.ticket.contains(key.split('&').next().unwrap()), "{}", sender.ticket);
        let words = format!("recv {} --json --timeout 60 -o", sender.ticket);
        let received = run(&arguments(&words, &[&into.join(run_number.to_string())])).expect(0);
        let summary = received.event("summary");
        assert_eq!(summary["verified"], "signed", "{summary}");
        assert_eq!(summary["unannounced"], 0, "{summary}");
        let bytes = std::fs::read(into.join(run_number.to_string()).join("file")).unwrap();
        assert!(bytes == noise(400_000, 1));
        sender.finish();
    }
}
