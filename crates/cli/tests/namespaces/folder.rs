//! A folder that changes while it is followed: how soon receivers have each version.

use crate::program::Program;
use crate::scene::{Scene, same_file};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest wait for a version: many times what any takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time without changes after which the sender makes a version.
const SETTLE: Duration = Duration::from_secs(2);
/// Time from one new file to the next.
const PERIOD: Duration = Duration::from_secs(4);

/// `count` files of 1 900 bytes, in ten directories.
fn plant(folder: &Path, count: usize) {
    for number in 0..count {
        let directory = folder.join(format!("d{}", number % 10));
        std::fs::create_dir_all(&directory).unwrap();
        let bytes = fontana_testing::noise(1_900, number as u64);
        std::fs::write(directory.join(format!("file {number}")), bytes).unwrap();
    }
}

fn wait_until(what: &Path, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what:?}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn count(program: &Program, event: &str) -> usize {
    program.seen.iter().filter(|seen| seen["event"] == event).count()
}

/// Seconds, in their order: the smallest, the median and the largest.
fn spread(mut times: Vec<Duration>) -> [f64; 3] {
    times.sort();
    [0, times.len() / 2, times.len() - 1].map(|index| times[index].as_secs_f64())
}

/// One new file of 2 KB every four seconds among 5 000: 9.5 MB, at 50 Mbit/s and 10 % loss. How
/// soon each is there depends on this host; `crates/sim/tests/sim/folder.rs` measures it in virtual
/// time.
#[test]
fn every_version_of_a_folder_reaches_its_followers_and_late_receivers() {
    let Some(scene) = Scene::new(3) else { return };
    let folder = scene.path("folder");
    plant(&folder, 5_000);
    let key = scene.path("key");
    let made =
        scene.bench.command(0, env!("CARGO_BIN_EXE_fontana")).arg("keygen").arg(&key).output();
    assert!(made.unwrap().status.success());
    [1, 2].into_iter().for_each(|host| scene.bench.lose(host, 100));
    let options = format!("--watch=2s --sign {} --rate 50M", key.display());
    let session = scene.send(0, &options, &folder);
    let into = scene.received(1);
    let mut follower = scene.receive(1, &session.ticket, "--watch").receiver;
    wait_until(&into, || into.join("folder/d9/file 4999").exists());
    follower.wait_for("taken", PATIENCE);
    let memory_at_first = (session.sender.peak_memory(), follower.peak_memory());

    let (mut after_settling, mut late) = (Vec::new(), Vec::new());
    for version in 0..12 {
        let begun = Instant::now();
        let name = PathBuf::from(format!("folder/new {version}"));
        std::fs::write(scene.path("").join(&name), fontana_testing::noise(2_000, version)).unwrap();
        // A receiver that joins in the middle of a version, with nothing.
        let joined = (version % 3 == 0).then(|| {
            let into = scene.path(&format!("late {version}"));
            let options = "--watch=1";
            (Instant::now(), scene.receive_into(&into, 2, &session.ticket, options).receiver)
        });
        wait_until(&name, || into.join(&name).exists());
        assert!(same_file(&scene.path("").join(&name), &into.join(&name)));
        after_settling.push(begun.elapsed().saturating_sub(SETTLE));
        // Files have their names before the version is complete: an interrupt would be 130.
        follower.wait_for("taken", PATIENCE);
        if let Some((joined, mut receiver)) = joined {
            receiver.wait_for("taken", PATIENCE);
            late.push(joined.elapsed());
            assert_eq!(receiver.finish(PATIENCE).0, Some(0));
            assert_eq!(count(&receiver, "corrupt"), 0);
        }
        std::thread::sleep(PERIOD.saturating_sub(begun.elapsed()));
    }
    let memory = (session.sender.peak_memory(), follower.peak_memory());
    follower.interrupt();
    let (code, said) = follower.finish(PATIENCE);
    assert_eq!(code, Some(0), "{said}");
    println!("seconds from settling to the file: {:?}", spread(after_settling));
    println!("seconds of late receivers: {:?}", spread(late));
    println!("peak memory: {memory_at_first:?}, then {memory:?}");
    assert_eq!((count(&follower, "corrupt"), count(&follower, "given_up")), (0, 0));
    // The default of --memory.
    assert!(memory.0.max(memory.1) < 256 << 20, "{memory:?}");
    session.end();
}
