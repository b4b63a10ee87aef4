//! Directory trees.

use crate::scene::Scene;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

/// 2 000 small files and names of every kind at 10 % loss; reception inefficiency 1.05.
#[test]
fn a_tree_of_two_thousand_files_arrives_as_it_was() {
    let Some(scene) = Scene::new(2) else { return };
    scene.bench.lose(1, 100);
    let tree = scene.path("tree");
    for number in 0..2000_u64 {
        let place = tree.join(format!("d{}/e{}", number % 11, number % 5));
        std::fs::create_dir_all(&place).unwrap();
        let file = place.join(format!("file {number}"));
        fontana_testing::noise_file(&file, number * 131 % 9_000, number).unwrap();
    }
    let names: [&[u8]; 4] = [b"two\nlines", "\u{fc}".as_bytes(), b"\xff\xfe", &[b'x'; 255]];
    for name in names {
        std::fs::write(tree.join(OsStr::from_bytes(name)), name).unwrap();
    }
    std::fs::write(tree.join("empty"), "").unwrap();
    std::fs::create_dir(tree.join("nothing")).unwrap();
    std::os::unix::fs::symlink("../outside", tree.join("link")).unwrap();
    let session = scene.send(0, "", &tree);
    let summary = scene.receive(1, &session.ticket, "--timeout 60").complete();
    assert!(summary.reception_inefficiency() <= 1.05);
    assert_eq!(listing(&tree), listing(&scene.received(1).join("tree")));
    session.end();
}

/// Names, bytes, modes, times and what links lead to.
fn listing(root: &Path) -> String {
    let find = "find . ! -type l -printf '%P\\0%y %m %T@\\0' | sort -z | sha256sum; \
                find . -type l -printf '%P\\0%l\\0' | sort -z | sha256sum; \
                find . -type f -print0 | sort -z | xargs -0 sha256sum -z | sha256sum";
    let command = Command::new("sh").args(["-ec", find]).current_dir(root).output();
    String::from_utf8(command.unwrap().stdout).unwrap()
}
