//! `recv --to DEVICE`: files and loop devices that are written in place; `send DEVICE`.

use crate::support::{Running, Sender, arguments, noise, place, run};
use rustix::process::Signal;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of noise, with a hole in it.
fn image(path: &Path) -> Vec<u8> {
    let mut bytes = noise(3_000_000, 9);
    bytes[1 << 20..2 << 20].fill(0);
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(&bytes[..1 << 20]).unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(2 << 20)).unwrap();
    file.write_all(&bytes[2 << 20..]).unwrap();
    bytes
}

#[test]
fn a_file_that_is_there_is_written_in_place_if_that_is_allowed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    let bytes = image(&file);
    let sender = Sender::start(&format!("--to {} --rate 80M", place()), &[&file]);
    let target = directory.path().join("target");
    std::fs::write(&target, noise(5_000_000, 1)).unwrap();
    let staging = directory.path().join("staging");
    let words = format!("recv {} --json --staging {}", sender.ticket, staging.display());
    let refused = run(&arguments(&format!("{words} --to"), &[&target])).expect(6);
    assert!(refused.stderr.contains("exists already"), "{}", refused.stderr);
    assert_eq!(std::fs::metadata(&target).unwrap().len(), 5_000_000);
    run(&arguments(&format!("{words} --existing replace --to"), &[&target])).expect(0);
    assert!(std::fs::read(&target).unwrap() == bytes, "holes are zeros, and it has its length");
    let new = directory.path().join("new");
    run(&arguments(&format!("{words} --to"), &[&new])).expect(0);
    assert!(std::fs::read(&new).unwrap() == bytes);
    assert_eq!(std::fs::read_dir(&staging).unwrap().count(), 0);
    sender.finish();
}

#[test]
fn a_killed_receiver_goes_on_with_what_is_on_the_device() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    let bytes = image(&file);
    let sender = Sender::start(&format!("--to {} --rate 5M", place()), &[&file]);
    let (target, staging) = (directory.path().join("target"), directory.path().join("staging"));
    let words = format!(
        "recv {} --json --existing replace --staging {} --to",
        sender.ticket,
        staging.display()
    );
    let mut first = Running::start(&arguments(&words, &[&target]));
    while !first.line().contains("\"event\":\"accepted\"") {}
    std::thread::sleep(std::time::Duration::from_millis(600));
    first.signal(Signal::KILL);
    drop(first.hang_up());
    let second = run(&arguments(&words, &[&target])).expect(0);
    let resumed = second.event("resumed");
    assert!(resumed["symbols"].as_u64().unwrap() > 100, "{resumed}");
    assert!(std::fs::read(&target).unwrap() == bytes);
    sender.finish();
}

/// A loop device over a file; taken down when it is dropped.
struct Loop(PathBuf);

impl Loop {
    /// `None` where there can be none; the reason was said.
    fn new(file: &Path, bytes: u64) -> Option<Self> {
        std::fs::File::create(file).unwrap().set_len(bytes).unwrap();
        let made = Command::new("losetup").args(["-f", "--show"]).arg(file).output();
        match made {
            Ok(output) if output.status.success() => {
                Some(Self(String::from_utf8(output.stdout).unwrap().trim_end().into()))
            }
            other => {
                let mut error = std::io::stderr();
                let _ = writeln!(error, "SKIPPED: no loop device here (root, losetup): {other:?}");
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).status();
    }
}

#[test]
fn a_device_is_written_only_when_it_was_confirmed_is_free_and_large_enough() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    let bytes = image(&file);
    let (behind, small) = (directory.path().join("behind"), directory.path().join("small"));
    let Some(device) = Loop::new(&behind, 4 << 20) else { return };
    let Some(too_small) = Loop::new(&small, 2 << 20) else { return };
    let old = noise(4 << 20, 8);
    std::fs::write(&device.0, &old).unwrap();
    let sender = Sender::start(&format!("--to {} --rate 80M", place()), &[&file]);
    let words = format!("recv {} --json --staging", sender.ticket);
    let receive = |options: &str, device: &Loop| {
        let words = format!("{words} {} {options} --to", directory.path().join("s").display());
        run(&arguments(&words, &[&device.0]))
    };
    let asked = receive("", &device).expect(2);
    assert!(asked.stderr.contains("4.2 MB) will be lost"), "{}", asked.stderr);
    let refused = receive("--yes", &too_small).expect(6);
    assert!(refused.stderr.contains("has 2097152 bytes"), "{}", refused.stderr);
    assert!(std::fs::read(&small).unwrap().iter().all(|&byte| byte == 0), "nothing was written");
    // Exclusive: as a mount is (open(2), O_EXCL).
    let user = std::fs::OpenOptions::new().read(true).custom_flags(0o200).open(&device.0).unwrap();
    let busy = receive("--yes", &device).expect(6);
    assert!(busy.stderr.contains("mounted or in use"), "{}", busy.stderr);
    drop(user);
    assert!(std::fs::read(&device.0).unwrap() == old, "nothing was written");

    receive("--yes", &device).expect(0);
    let written = std::fs::read(&device.0).unwrap();
    assert!(written[..bytes.len()] == bytes, "holes are zeros");
    assert!(written[bytes.len()..] == old[bytes.len()..], "what is behind stays");
    sender.finish();
}

/// A file system that is mounted; unmounted when it is dropped.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    fn new(device: &Loop, at: &'a Path, options: &str) -> Self {
        let mount = Command::new("mount").args(["-o", options]).arg(&device.0).arg(at).status();
        assert!(mount.unwrap().success());
        Self(at)
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_device_that_nobody_writes_to_is_sent_with_holes_for_its_zeros() {
    let directory = tempfile::tempdir().unwrap();
    let (behind, at) = (directory.path().join("behind"), directory.path().join("at"));
    std::fs::create_dir(&at).unwrap();
    let Some(device) = Loop::new(&behind, 32 << 20) else { return };
    assert!(Command::new("mkfs.ext4").arg("-q").arg(&device.0).status().unwrap().success());
    let mounted = Mounted::new(&device, &at, "rw");
    std::fs::write(at.join("file"), noise(1_000_000, 3)).unwrap();
    let dry = arguments("send --dry-run -i lo", &[&device.0]);
    let refused = run(&dry).expect(6).stderr;
    assert!(refused.contains("mounted read-write at") && refused.contains("lsblk"), "{refused}");
    drop(mounted);

    let _mounted = Mounted::new(&device, &at, "ro");
    let sender = Sender::start(&format!("--to {} --rate 200M", place()), &[&device.0]);
    let ticket = sender.ticket.clone();
    run(&arguments(&format!("recv {ticket} -o"), &[directory.path()])).expect(0);
    sender.finish();
    let received = directory.path().join(device.0.file_name().unwrap());
    assert!(std::fs::read(&received).unwrap() == std::fs::read(&device.0).unwrap());
    let blocks = std::os::unix::fs::MetadataExt::blocks(&received.metadata().unwrap());
    assert!(blocks * 512 < 8 << 20, "{blocks} blocks of 512 bytes: zeros take no space");
}
