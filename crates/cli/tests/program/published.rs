//! `fontana recv URL`: mirrors say what they have by a file, which a publisher may have signed.

use crate::support::{Run, arguments, noise, run};
use crate::web::Python;
use std::fs;
use std::path::{Path, PathBuf};

const HEAD: &str = "fontana.head";

/// Two keys: their files, and the public keys.
fn keys(directory: &Path) -> [(String, String); 2] {
    ["publisher", "other"].map(|name| {
        let path = directory.join(name);
        let public = run(&arguments("keygen", &[&path])).expect(0).stdout;
        (path.to_str().unwrap().to_owned(), public.trim().to_owned())
    })
}

/// A mirror with one file of this name and version.
fn mirror(root: &Path, name: &str, version: u32, options: &str) -> Python {
    fs::create_dir(root).unwrap();
    fs::write(root.join(name), noise(100_000 * version as usize, 1)).unwrap();
    let words = format!("publish --web http://a.example/ --content-version {version} {options}");
    run(&arguments(&words, &[&root.join(name)])).expect(0);
    Python::start(root)
}

/// Receives into a new directory. Returns the run, and the names there.
fn receive(words: &str) -> (Run, Vec<String>) {
    let into = tempfile::tempdir().unwrap();
    let run = receive_into(words, into.path());
    let names = fs::read_dir(into.path()).unwrap().map(|entry| {
        let name = entry.unwrap().file_name();
        name.to_str().unwrap().to_owned()
    });
    (run, names.filter(|name| !name.starts_with('.')).collect())
}

/// Whether it has said this, to people or programs.
fn says(run: &Run, text: &str) -> bool {
    run.stderr.contains(text) || run.stdout.contains(text)
}

fn receive_into(words: &str, into: &Path) -> Run {
    run(&arguments(&format!("recv {words} --json -o"), &[into]))
}

#[test]
fn the_address_of_a_mirror_suffices_with_the_publishers_key() {
    let directory = tempfile::tempdir().unwrap();
    let [(file, key), (_, other)] = keys(directory.path());
    let root = directory.path().join("root");
    let server = mirror(&root, "image.raw", 1, &format!("--sign {file}"));
    let web = &server.address;

    let (received, names) = receive(&format!("{web} --key {key}"));
    let published = received.expect(0).event("published");
    assert_eq!((published["publisher"].as_str(), names), (Some(&*key), vec!["image.raw".into()]));
    assert_eq!((&published["version"], &published["bytes"]), (&1.into(), &100_000.into()));

    // Another key has not signed it, and nothing is received.
    let (refused, names) = receive(&format!("{web} --key {other}"));
    assert!(names.is_empty() && says(&refused.expect(7), "a different publisher"));
    // Without a key a person decides, and there is no terminal.
    let (refused, names) = receive(web);
    assert!(names.is_empty() && says(&refused.expect(2), "--key"));
    let (received, names) = receive(&format!("{web} --yes"));
    assert_eq!(
        (names.len(), received.expect(0).event("published")["publisher"].clone()),
        (1, key.clone().into())
    );
    // Its names are listed, and nothing is received.
    let (listed, names) = receive(&format!("{web} --list"));
    assert!(names.is_empty());
    assert_eq!(listed.expect(0).event("entry")["name"], "image.raw");

    // A head that was changed on the mirror.
    let mut bytes = fs::read(root.join(HEAD)).unwrap();
    bytes[31] ^= 1;
    fs::write(root.join(HEAD), &bytes).unwrap();
    for words in [format!("--key {key}"), "--yes".to_owned()] {
        let (refused, names) = receive(&format!("{web} {words}"));
        assert!(names.is_empty() && says(&refused.expect(7), "signature does not match"));
    }
    // One that is not signed, and none.
    fs::remove_file(root.join(HEAD)).unwrap();
    let (refused, _) = receive(&format!("{web} --key {key}"));
    assert!(says(&refused.expect(75), "fontana.head: HTTP status 404"));
    run(&arguments("publish --web http://a.example/", &[&root.join("image.raw")])).expect(0);
    let (refused, _) = receive(&format!("{web} --key {key}"));
    assert!(says(&refused.expect(7), "not signed"));
    let (received, names) = receive(&format!("{web} -y"));
    assert!(received.expect(0).event("published")["publisher"].is_null());
    assert_eq!(names, ["image.raw"]);
}

#[test]
fn the_newest_version_that_the_publisher_has_signed_is_received() {
    let directory = tempfile::tempdir().unwrap();
    let [(file, key), _] = keys(directory.path());
    let sign = format!("--sign {file}");
    let [old, new] = [1, 2].map(|version| {
        mirror(&directory.path().join(version.to_string()), "image.raw", version, &sign)
    });
    let both = format!("{} {}", old.address, new.address);
    let (received, names) = receive(&format!("{both} --key {key}"));
    let received = received.expect(0);
    assert_eq!((&received.event("published")["version"], names.len()), (&2.into(), 1));
    assert!(says(&received, "it has the older version 1"), "{}", received.stderr);
    // Without the key, a version is what the mirrors say.
    let (refused, names) = receive(&format!("{both} --yes"));
    assert!(names.is_empty() && says(&refused.expect(2), "has the manifest"));

    // A directory that has the newer version takes no older one from any mirror.
    let into = directory.path().join("into");
    let delete = format!("--key {key} --delete --existing replace");
    receive_into(&format!("{} {delete}", new.address), &into).expect(0);
    let refused = receive_into(&format!("{} {delete}", old.address), &into).expect(75);
    assert!(says(&refused, "older version"), "{}", refused.stderr);
    assert_eq!(fs::read(into.join("image.raw")).unwrap().len(), 200_000);
}

#[test]
fn what_has_expired_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let [(file, key), _] = keys(directory.path());
    let sign = format!("--sign {file} --expires 10");
    let server = mirror(&directory.path().join("root"), "image.raw", 1, &sign);
    std::thread::sleep(std::time::Duration::from_secs(11));
    let (refused, names) = receive(&format!("{} --key {key}", server.address));
    let refused = refused.expect(7);
    assert!(names.is_empty() && says(&refused, "by this host's clock"));
    assert!(says(&refused, "--accept expired"), "{}", refused.stderr);
    receive(&format!("{} --key {key} --accept expired", server.address)).0.expect(0);
}

/// A mirror that sends other bytes, or too many, is left out, and the next one is asked.
#[test]
fn a_mirror_with_another_manifest_does_not_stop_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let [(file, key), _] = keys(directory.path());
    let roots = ["a", "b", "c"].map(|name| directory.path().join(name));
    let first = mirror(&roots[0], "f", 1, &format!("--sign {file}"));
    let files = || fs::read_dir(&roots[0]).unwrap().map(|entry| entry.unwrap().path());
    let copies = roots.each_ref().map(|root| {
        fs::create_dir_all(root).unwrap();
        for path in files() {
            let copy = root.join(path.file_name().unwrap());
            if copy != path {
                fs::copy(&path, copy).unwrap();
            }
        }
        Python::start(root)
    });
    drop(first);
    let is_manifest = |path: &PathBuf| path.extension().is_some_and(|end| end == "fontana");
    let manifest = files().find(is_manifest).unwrap();
    let mut bytes = fs::read(&manifest).unwrap();
    bytes[20] ^= 1;
    fs::write(&manifest, bytes).unwrap();
    fs::write(roots[1].join(HEAD), noise(1 << 20, 1)).unwrap();
    let [damaged, headless, right] = copies.each_ref().map(|server| server.address.as_str());
    // Alone, the damaged one is named. Beside others, the first right answer ends the question.
    let (refused, names) = receive(&format!("{damaged} --key {key}"));
    assert!(names.is_empty() && says(&refused.expect(75), "is not the manifest"));
    let words = [damaged, headless, right].join(" ");
    let (received, names) = receive(&format!("{words} --key {key}"));
    let received = received.expect(0);
    assert_eq!(names, ["f"]);
    assert!(says(&received, "it has more than 65536 bytes"), "{}", received.stderr);
}

#[test]
fn content_may_not_have_the_name_of_the_head() {
    let directory = tempfile::tempdir().unwrap();
    let head = directory.path().join(HEAD);
    fs::write(&head, "no head").unwrap();
    let refused = run(&arguments("publish --web http://a.example/", &[&head])).expect(2);
    assert!(says(&refused, "says what the mirror has"), "{}", refused.stderr);
    assert_eq!(fs::read(&head).unwrap(), b"no head");
}
