//! The pages `docs/howto-*.md`: their commands run on hosts of a bench, as they are written, in the
//! order of the page. A line `HOST$ COMMAND` of a block `console` runs in a shell on that host.
//!
//! A test replaces what a page cannot know: names of devices, addresses, rates. Files that people
//! carry between the hosts are copied. `fontana send` and `--watch` run until the test has seen
//! what they should do; every other command has to end with exit code 0.

use crate::bench::{Bench, sh};
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

/// Whether a command runs until it is stopped.
fn is_standing(command: &str) -> bool {
    ["fontana send", "fontana serve", "--watch"].iter().any(|words| command.contains(words))
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
    /// The hosts by their names on the page, with their benches. Each works in a directory of its
    /// own.
    hosts: BTreeMap<&'a str, (&'a Bench, usize)>,
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
        let hosts = hosts.iter().zip(0..);
        let hosts = hosts.map(|(host, number)| (*host, (&scene.bench, number))).collect();
        Self { scene, hosts, replaced: Vec::new(), standing: Vec::new() }
    }

    fn path(&self, host: &str, name: &str) -> PathBuf {
        self.scene.path(host).join(name)
    }

    /// Waits for a file of any host, and copies it to this one.
    fn carry(&self, name: &str, to: &str) {
        let is_whole = |at: &PathBuf| at.metadata().is_ok_and(|metadata| metadata.len() > 0);
        let find = || self.hosts.keys().map(|host| self.path(host, name)).find(is_whole);
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
        let (bench, number) = self.hosts[host];
        let mut shell = bench.command(number, "bash");
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

    /// Starts a command, for which its ticket is carried to the host.
    fn start_with_ticket(&self, host: &str, command: &str) -> Program {
        if command.contains("fontana recv") {
            self.carry("ticket", host);
        }
        self.start(host, command)
    }

    /// Runs receivers until they are complete, and waits for the sender, which ends with this code.
    fn run_to_the_end(&mut self, block: &[Line], code: i32) {
        let mut programs = Vec::new();
        for (host, command) in block {
            programs.push((command, self.start_with_ticket(host, command)));
        }
        for (command, mut program) in programs.into_iter().rev() {
            let expected = if command.contains("fontana send") { code } else { 0 };
            let (code, said) = program.finish(PATIENCE);
            assert_eq!(code, Some(expected), "{command}: {said}");
        }
    }

    /// Runs a block of commands, receivers side by side, until `done`.
    fn run(&mut self, block: &[Line], done: impl Fn(&Self)) {
        let mut receivers = Vec::new();
        for (host, command) in block {
            let mut program = self.start_with_ticket(host, command);
            if is_standing(command) {
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
    page.replaced = vec![("192.0.2.2", Bench::address(1)), ("02:00:00:00:00:02", mac)];
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

/// Three receivers that each lose other packets, and a sender that sends everything once and ends.
#[test]
fn sharing() {
    let Some(scene) = Scene::new(4) else { return };
    let racks = ["rack-1", "rack-2", "rack-3"];
    let page = with_image(&scene, &["sender", "rack-1", "rack-2", "rack-3"], 4 << 20);
    // What all three lose, none has.
    (1..=3).for_each(|host| scene.bench.lose(host, 5));
    let [block] = &blocks("sharing.md")[..] else { panic!("one block") };
    let mut receivers = Vec::new();
    for (host, command) in block {
        // As long as receivers take to join the group.
        for number in 1..=receivers.len() {
            let has_joined = || {
                let groups = scene.bench.command(number, "cat").arg("/proc/net/igmp").output();
                String::from_utf8(groups.unwrap().stdout).unwrap().contains("014DFFEF")
            };
            wait_until("it joins 239.255.77.1", has_joined);
        }
        let mut program = page.start_with_ticket(host, command);
        if command.contains("fontana recv") {
            receivers.push(program);
        } else {
            let (code, said) = program.finish(PATIENCE);
            assert_eq!(code, Some(0), "{command}: {said}");
        }
    }
    for mut program in receivers {
        let (code, said) = program.finish(PATIENCE);
        assert_eq!(code, Some(0), "{said}");
    }
    assert_received(&page, &racks);
}

/// The commands of a page's task, by its number.
fn task(number: usize) -> Vec<Line> {
    let tasks = blocks("howto-tasks.md");
    assert_eq!(tasks.len(), 10);
    tasks.into_iter().nth(number - 1).unwrap()
}

#[test]
fn no_task_takes_more_than_four_words_and_three_options_at_a_side() {
    for (_, command) in (1..=10).flat_map(task) {
        let (_, program) = command.split_once("fontana ").unwrap();
        let own = program.split(['|', '>']).next().unwrap();
        let is_option = |word: &&str| word.starts_with('-') && word.len() > 1;
        let words = own.split_whitespace().take_while(|word| !is_option(word)).count() + 1;
        let options = own.split_whitespace().filter(is_option).count();
        assert!(words <= 4 && options <= 3, "{command}");
    }
}

/// A page with a sender that has an image, and receivers.
fn with_image<'a>(scene: &'a Scene, hosts: &[&'a str], bytes: u64) -> Page<'a> {
    let page = Page::new(scene, hosts);
    scene.noise("sender/image.raw", bytes);
    page
}

fn assert_received(page: &Page<'_>, hosts: &[&str]) {
    for host in hosts {
        assert!(same_file(&page.path("sender", "image.raw"), &page.path(host, "image.raw")));
    }
}

#[test]
fn task_1_three_hosts() {
    let Some(scene) = Scene::new(4) else { return };
    let mut page = with_image(&scene, &["sender", "one", "two", "three"], 4 << 20);
    page.run_to_the_end(&task(1), 0);
    assert_received(&page, &["one", "two", "three"]);
}

#[test]
fn task_2_one_is_off() {
    let Some(scene) = Scene::new(3) else { return };
    let mut page = with_image(&scene, &["sender", "one", "two"], 1 << 20);
    page.replaced = vec![("20s", "8s".to_owned())];
    page.run_to_the_end(&task(2), 9);
    assert_received(&page, &["one", "two"]);
}

#[test]
fn task_3_a_lossy_network() {
    let Some(scene) = Scene::new(2) else { return };
    scene.bench.lose(1, 200);
    let mut page = with_image(&scene, &["sender", "one"], 4 << 20);
    page.run(&task(3), |page| assert_received(page, &["one"]));
}

#[test]
fn task_4_a_directory() {
    let Some(scene) = Scene::new(2) else { return };
    let mut page = Page::new(&scene, &["sender", "one"]);
    std::fs::create_dir(page.path("sender", "folder")).unwrap();
    let write = |page: &Page<'_>, text: &str| {
        std::fs::write(page.path("sender", "folder/file"), text).unwrap();
    };
    write(&page, "first");
    page.run(&task(4), |page| {
        for text in ["first", "second"] {
            write(page, text);
            let received = || std::fs::read_to_string(page.path("one", "folder/file"));
            wait_until(text, || received().is_ok_and(|received| received == text));
        }
    });
}

#[test]
fn task_5_a_device() {
    let Some(scene) = Scene::new(2) else { return };
    let [from, to] = ["from", "to"].map(|name| Loop::new(&scene.path(name), 4 << 20));
    std::fs::write(&from.0, fontana_testing::noise(4 << 20, 5)).unwrap();
    let mut page = Page::new(&scene, &["sender", "one"]);
    page.replaced = vec![("/dev/sdX", from.0.clone()), ("/dev/sdY", to.0.clone())];
    page.run(&task(5), |_| assert!(same_file(Path::new(&from.0), Path::new(&to.0))));
}

#[test]
fn task_6_a_pipe() {
    let Some(scene) = Scene::new(2) else { return };
    let mut page = Page::new(&scene, &["sender", "one"]);
    std::fs::create_dir(page.path("sender", "photos")).unwrap();
    scene.noise("sender/photos/1.jpg", 2 << 20);
    page.run_to_the_end(&task(6), 0);
    assert!(same_file(&page.path("sender", "photos/1.jpg"), &page.path("one", "photos/1.jpg")));
}

#[test]
fn task_7_a_diode() {
    let Some(scene) = Scene::new(2) else { return };
    // Nothing but membership reports leaves the receiver.
    let script = "nft 'add table inet diode; add chain inet diode out \
                  { type filter hook output priority 0; policy drop; }; \
                  add rule inet diode out ip protocol igmp accept'";
    let closed = scene.bench.command(1, "sh").args(["-ec", script]).status().unwrap();
    assert!(closed.success());
    let mut page = with_image(&scene, &["sender", "one"], 4 << 20);
    page.run(&task(7), |page| assert_received(page, &["one"]));
}

#[test]
fn task_8_a_cluster() {
    let Some(scene) = Scene::new(4) else { return };
    let page = Page::new(&scene, &["sender", "one", "two", "three"]);
    std::fs::create_dir(page.path("sender", "weights")).unwrap();
    scene.noise("sender/weights/1", 24 << 20);
    let lines = task(8);
    let start = |line: usize| {
        let (host, command): &Line = &lines[line];
        page.start_with_ticket(host, command)
    };
    let (mut sender, one, killed) = (start(0), start(1), start(2));
    std::thread::sleep(Duration::from_secs(2));
    killed.kill_group();
    std::thread::sleep(Duration::from_secs(1));
    for mut receiver in [one, start(2), start(3)] {
        let (code, said) = receiver.finish(PATIENCE);
        assert_eq!(code, Some(0), "{said}");
    }
    let (code, said) = sender.finish(PATIENCE);
    assert_eq!(code, Some(0), "{said}");
    for host in ["one", "two", "three"] {
        assert!(same_file(&page.path("sender", "weights/1"), &page.path(host, "weights/1")));
    }
}

#[test]
fn task_9_two_networks() {
    let Some(scene) = Scene::new(2) else { return };
    let other = scene.bench.second_network();
    let mut page = with_image(&scene, &["sender", "one", "two"], 4 << 20);
    page.hosts.insert("two", (&other, 1));
    page.run(&task(9), |page| assert_received(page, &["one", "two"]));
}

#[test]
fn task_10_the_web() {
    let Some(scene) = Scene::new(2) else { return };
    let mut page = with_image(&scene, &["sender", "one"], 4 << 20);
    page.replaced = vec![("10.0.0.7", Bench::address(0))];
    page.run(&task(10), |page| assert_received(page, &["one"]));
}
