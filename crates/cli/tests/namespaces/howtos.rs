//! The pages `docs/howto-*.md`: their commands run on hosts of a bench, as they are written, in the
//! order of the page. A line `HOST$ COMMAND` of a block `console` runs in a shell on that host.
//!
//! A test replaces what a page cannot know: names of devices, addresses, rates. Files that people
//! carry between the hosts are copied. `fontana send` and `--watch` run until the test has seen
//! what they should do; every other command has to end with exit code 0.

use crate::bench::{self, sh};
use crate::program::Program;
use crate::scene::{Scene, same_file};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for each command that has to end: longer than any takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// The command of a line, and its host.
type Line = (String, String);

/// The blocks of commands of a page.
fn blocks(page: &str) -> Vec<Vec<Line>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let line = |line: &str| {
        let (host, command) = line.split_once("$ ").unwrap_or_else(|| panic!("{line}"));
        (host.to_owned(), command.to_owned())
    };
    let commands = |rest: &str| rest.split("\n```").next().unwrap().lines().map(line).collect();
    text.split("```console\n").skip(1).map(commands).collect()
}

/// Waits until something holds.
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A page on the bench.
struct Page<'a> {
    scene: &'a Scene,
    /// The hosts by their names on the page. Each works in a directory of its own.
    hosts: BTreeMap<&'a str, usize>,
    /// What is replaced in each command.
    replaced: Vec<(&'a str, String)>,
    /// Programs that run until the page ends.
    standing: Vec<Program>,
}

impl<'a> Page<'a> {
    fn new(scene: &'a Scene, hosts: &[&'a str]) -> Self {
        for host in hosts {
            std::fs::create_dir_all(scene.path(host)).unwrap();
        }
        let hosts = hosts.iter().copied().zip(0..).collect();
        Self { scene, hosts, replaced: Vec::new(), standing: Vec::new() }
    }

    fn path(&self, host: &str, name: &str) -> PathBuf {
        self.scene.path(host).join(name)
    }

    /// Waits for a file of any host, and copies it to this one.
    fn carry(&self, name: &str, to: &str) {
        let find = || self.hosts.keys().map(|host| self.path(host, name)).find(|at| at.exists());
        wait_until(name, || find().is_some());
        let (from, to) = (find().unwrap(), self.path(to, name));
        if from != to {
            std::fs::copy(from, to).unwrap();
        }
    }

    fn start(&self, host: &str, command: &str) -> Program {
        let mut command = command.to_owned();
        for (from, to) in &self.replaced {
            command = command.replace(from, to);
        }
        let programs = Path::new(env!("CARGO_BIN_EXE_fontana")).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut shell = self.scene.bench.command(self.hosts[host], "bash");
        shell
            .args(["-c", &format!("set -o pipefail; {command}")])
            .current_dir(self.scene.path(host))
            .env("PATH", path)
            .env("TMPDIR", self.scene.path(host))
            // All programs of a pipe are ended together.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Program::start(shell)
    }

    /// Runs a block of commands, receivers side by side, until `done`.
    fn run(&mut self, block: &[Line], done: impl Fn(&Self)) {
        let mut receivers = Vec::new();
        for (host, command) in block {
            if command.contains("$(cat ticket)") {
                self.carry("ticket", host);
            }
            let mut program = self.start(host, command);
            if command.contains("fontana send") || command.contains("--watch") {
                self.standing.push(program);
            } else if command.contains("fontana recv") {
                receivers.push((command, program));
            } else {
                let (code, said) = program.finish(PATIENCE);
                assert_eq!(code, Some(0), "{command}: {said}");
            }
        }
        for (command, mut program) in receivers {
            let (code, said) = program.finish(PATIENCE);
            assert_eq!(code, Some(0), "{command}: {said}");
        }
        done(self);
        for program in self.standing.drain(..) {
            program.kill_group();
        }
        for host in self.hosts.keys() {
            let _ = std::fs::remove_file(self.path(host, "ticket"));
        }
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        self.standing.iter().for_each(Program::kill_group);
    }
}

/// Whether a tool that only a page needs is there.
fn has(tool: &str, package: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        fontana_testing::skip(&format!("{tool} is missing: apt-get install {package}"));
    }
    found
}

/// A loop device over a new file; taken down when it is dropped.
struct Loop(String);

impl Loop {
    fn new(file: &Path, bytes: u64) -> Self {
        std::fs::File::create(file).unwrap().set_len(bytes).unwrap();
        let made = sh(&format!("losetup -f --show '{}'", file.display()));
        Self(String::from_utf8(made.stdout).unwrap().trim_end().to_owned())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

#[test]
fn imaging() {
    if !has("partclone.ext4", "partclone") || !has("zstd", "zstd") {
        return;
    }
    let Some(scene) = Scene::new(2) else { return };
    let master = Loop::new(&scene.path("behind master"), 48 << 20);
    std::fs::create_dir(scene.path("files")).unwrap();
    let file = scene.noise("files/file", 5 << 20);
    sh(&format!("mkfs.ext4 -q -d '{}' {}", scene.path("files").display(), master.0));
    scene.bench.lose(1, 50);
    let blocks = blocks("howto-imaging.md");
    assert_eq!(blocks.len(), 2);
    for block in &blocks {
        let client = Loop::new(&scene.path("behind client"), 48 << 20);
        let mut page = Page::new(&scene, &["master", "client"]);
        page.replaced = vec![("/dev/sdX", master.0.clone()), ("/dev/sdY", client.0.clone())];
        page.run(block, |_| ());
        sh(&format!("e2fsck -fn {}", client.0));
        let received = sh(&format!("debugfs -R 'cat file' {}", client.0)).stdout;
        assert!(received == std::fs::read(&file).unwrap());
    }
}

#[test]
fn diode() {
    let Some(scene) = Scene::new(2) else { return };
    let mut page = Page::new(&scene, &["low", "high"]);
    let mac = scene.bench.command(1, "cat").arg("/sys/class/net/eth0/address").output().unwrap();
    let mac = String::from_utf8(mac.stdout).unwrap().trim().to_owned();
    page.replaced = vec![("192.0.2.2", bench::Bench::address(1)), ("02:00:00:00:00:02", mac)];
    // Nothing leaves the high side, neither answers to address requests.
    let script = "nft 'add table arp diode; add chain arp diode out \
                  { type filter hook output priority 0; policy drop; }; \
                  add table inet diode; add chain inet diode out \
                  { type filter hook output priority 0; policy drop; }'";
    let closed = scene.bench.command(1, "sh").args(["-ec", script]).status().unwrap();
    assert!(closed.success());
    scene.bench.lose(1, 50);
    std::fs::create_dir(page.path("low", "outbox")).unwrap();
    std::fs::write(page.path("low", "outbox/first"), "first").unwrap();
    std::fs::write(page.path("high", "import"), "#!/bin/sh\nls inbox/outbox > imported\n").unwrap();
    sh(&format!("chmod +x '{}'", page.path("high", "import").display()));
    let [block] = &blocks("howto-diode.md")[..] else { panic!("one block") };
    page.run(block, |page| {
        let imported = || std::fs::read_to_string(page.path("high", "imported"));
        wait_until("the first version", || imported().is_ok_and(|names| names == "first\n"));
        std::fs::write(page.path("low", "outbox/second"), "second").unwrap();
        wait_until("the second", || imported().is_ok_and(|names| names == "first\nsecond\n"));
        let second = std::fs::read(page.path("high", "inbox/outbox/second"));
        assert_eq!(second.unwrap(), b"second");
    });
}

#[test]
fn cluster() {
    let Some(scene) = Scene::new(3) else { return };
    let mut page = Page::new(&scene, &["login", "node1", "node2"]);
    page.replaced = vec![("2G", "100M".to_owned())];
    scene.bench.lose(1, 50);
    std::fs::create_dir(page.path("login", "weights")).unwrap();
    for shard in ["1.safetensors", "2.safetensors"] {
        scene.noise(&format!("login/weights/{shard}"), 5 << 20);
    }
    let [block] = &blocks("howto-cluster.md")[..] else { panic!("one block") };
    page.run(block, |page| {
        for node in ["node1", "node2"] {
            for shard in ["1.safetensors", "2.safetensors"] {
                let sent = page.path("login", "weights").join(shard);
                assert!(same_file(&sent, &page.path(node, "local/weights").join(shard)));
            }
        }
        assert!(page.path("login", "weights.manifest").exists());
    });
}

#[test]
fn satellite() {
    let Some(scene) = Scene::new(3) else { return };
    let mut page = Page::new(&scene, &["uplink", "station1", "station2"]);
    scene.bench.lose(1, 50);
    scene.bench.lose(2, 300);
    std::fs::create_dir(page.path("uplink", "products")).unwrap();
    for product in ["wind.nc", "wind.txt"] {
        scene.noise(&format!("uplink/products/{product}"), 1 << 20);
    }
    let [block] = &blocks("howto-satellite.md")[..] else { panic!("one block") };
    page.run(block, |page| {
        let received = |station: &str, product: &str| {
            let received = page.path(station, "products/products").join(product);
            let sent = page.path("uplink", "products").join(product);
            received.exists() && same_file(&sent, &received)
        };
        wait_until("station 2", || received("station2", "wind.nc"));
        wait_until("station 1", || received("station1", "wind.nc"));
        wait_until("station 1", || received("station1", "wind.txt"));
        scene.noise("uplink/products/rain.nc", 1 << 20);
        wait_until("station 2, again", || received("station2", "rain.nc"));
        assert!(!page.path("station2", "products/products/wind.txt").exists());
    });
}
