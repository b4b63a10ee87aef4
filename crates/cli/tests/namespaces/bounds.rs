//! Limits of a session: memory, disk, and the effect of hostile packets.

use crate::bench::{Bench, Mounted};
use crate::scene::{GROUP, Scene, same_file};
use std::ffi::OsString;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// A 1 GiB file with `--memory 128M` on both sides stays under 192 MiB.
#[test]
fn a_file_larger_than_memory_stays_within_memory() {
    let Some(scene) = Scene::alone(2) else { return };
    scene.bench.lose(1, 20);
    let file = scene.noise("image.raw", 1 << 30);
    transfer_within(&scene, &[1], &file, "--rate 400M", "--memory 128M", 192);
}

/// 6 GiB of holes and random parts at 1 Gbit/s, receivers on tmpfs: `VmHWM` under 512 MiB
/// with `--memory 256M`; holes stay holes. Takes 9 GB of memory for the two targets and the
/// source's pages.
/// `cargo test --release -p fontana-cli --test namespaces -- --ignored --nocapture six_gib`
#[test]
#[ignore = "takes a minute, 3 GB of disk and 9 GB of memory"]
fn six_gib_with_holes_cost_no_more_memory_than_was_given() {
    const PARTS: u64 = 24;
    const PART: u64 = 108 << 20;
    let Some(scene) = Scene::alone(3) else { return };
    scene.bench.lose(2, 10);
    let file = scene.path("image.raw");
    let sparse = std::fs::File::create(&file).unwrap();
    sparse.set_len(6 << 30).unwrap();
    let mut writer = std::io::BufWriter::with_capacity(1 << 20, sparse);
    for part in 0..PARTS {
        // Not at block boundaries, with a hole at either end.
        let at = part * ((6 << 30) / PARTS) + (70 << 20) + part * 4321;
        writer.seek(SeekFrom::Start(at)).unwrap();
        fontana_testing::write_noise(&mut writer, PART, part).unwrap();
    }
    writer.flush().unwrap();
    let mounted = [1, 2].map(|host| {
        let into = scene.received(host);
        std::fs::create_dir(&into).unwrap();
        Mounted::tmpfs(&into, "4g")
    });
    transfer_within(&scene, &[1, 2], &file, "--rate 1G", "--memory 256M", 512);
    for host in [1, 2] {
        let received = scene.received(host).join("image.raw").metadata().unwrap();
        let on_disk = received.blocks() * 512;
        println!("host {host}: {} MiB on disk", on_disk >> 20);
        assert_eq!(received.len(), 6 << 30);
        // A part begins and ends inside a block of the file system and of the sender's scan.
        assert!(on_disk < PARTS * (PART + (1 << 20)));
    }
    drop(mounted);
}

/// Transfers a file to hosts with this memory limit, which the sender has as well.
fn transfer_within(
    scene: &Scene,
    hosts: &[usize],
    file: &Path,
    rate: &str,
    memory: &str,
    limit_mib: u64,
) {
    let session = scene.send(0, &format!("{rate} {memory}"), file);
    let receive =
        |&host| (host, scene.receive(host, &session.ticket, &format!("{memory} --timeout 150")));
    let receptions: Vec<_> = hosts.iter().map(receive).collect();
    let mut peaks = Vec::new();
    for (host, mut reception) in receptions {
        let summary = reception.complete();
        let name = file.file_name().unwrap();
        assert!(same_file(file, &scene.received(host).join(name)), "host {host}");
        peaks.push(reception.receiver.peak_memory() >> 20);
        let drops = summary.number("kernel_drops") + summary.number("queue_drops");
        let goodput = summary.number("payload_bytes") * 8e-6 / summary.number("seconds");
        println!("host {host}: {goodput:.0} Mbit/s, {drops} dropped by the host");
    }
    peaks.push(session.sender.peak_memory() >> 20);
    let sent = session.end();
    let pace = sent.number("wire_bytes") * 8e-6 / sent.number("seconds");
    println!("peak memory: {peaks:?} MiB; the sender made {pace:.0} Mbit/s");
    assert!(peaks.iter().all(|&peak| peak < limit_mib), "{peaks:?}");
}

/// A disk with room for the file, and not for as many repair symbols, is worth a warning.
#[test]
fn a_disk_that_repair_symbols_may_fill_is_warned_of() {
    let Some(scene) = Scene::new(2) else { return };
    let file = scene.noise("image.raw", 8 << 20);
    let session = scene.send(0, "--rate 50M", &file);
    for (size, warns) in [("12m", true), ("18m", false)] {
        let disk = scene.path(size);
        std::fs::create_dir(&disk).unwrap();
        let mounted = Mounted::tmpfs(&disk, size);
        let mut reception = scene.receive_into(&disk, 1, &session.ticket, "--timeout 30");
        reception.complete();
        let is_warning = |event: &&serde_json::Value| event["event"] == "warning";
        let warnings = reception.receiver.seen.iter().filter(is_warning);
        let of_room = warnings.filter(|warning| warning["message"].to_string().contains("repair"));
        assert_eq!(of_room.count(), usize::from(warns), "{size}");
        drop(mounted);
    }
    session.end();
}

/// A disk of each of these sizes in MiB is too small for the file: the receiver ends with exit code
/// 5, and resumes on a larger disk.
fn disks_fill_up(sizes: impl IntoIterator<Item = u32>) {
    let Some(scene) = Scene::new(2) else { return };
    let file = scene.noise("image.raw", 72 << 20);
    let session = scene.send(0, "--rate 800M", &file);
    for size in sizes {
        let disk = scene.path("small");
        std::fs::create_dir_all(&disk).unwrap();
        let mounted = Mounted::tmpfs(&disk, &format!("{size}m"));
        let errors = scene.receive_into(&disk, 1, &session.ticket, "--timeout 30").finish(5);
        assert!(errors.contains("disk full"), "{size} MiB: {errors}");
        assert!(!disk.join("image.raw").exists(), "{size} MiB");
        mounted.resize("400m");
        scene.receive_into(&disk, 1, &session.ticket, "--timeout 30").complete();
        assert!(same_file(&file, &disk.join("image.raw")), "{size} MiB");
        drop(mounted);
    }
    session.end();
}

/// What is left of a version that has filled the disk gives way to the next one.
#[test]
fn a_follower_whose_disk_a_version_has_filled_takes_the_next_one() {
    let Some(scene) = Scene::new(2) else { return };
    let (folder, disk) = (scene.path("folder"), scene.path("small"));
    [&folder, &disk].map(std::fs::create_dir).into_iter().for_each(Result::unwrap);
    let mounted = Mounted::tmpfs(&disk, "12m");
    let put = |name: &str, bytes| {
        std::fs::rename(scene.noise(name, bytes), folder.join(name)).unwrap();
    };
    put("kept", 3 << 20);
    // Its source symbols fit, and what repairs them does not.
    scene.bench.lose(1, 250);
    let session = scene.send(0, "--watch=300ms --rate 50M", &folder);
    let mut reception = scene.receive_into(&disk, 1, &session.ticket, "--watch --timeout 100");
    let patience = Duration::from_secs(40);
    reception.receiver.wait_for("taken", patience);
    put("large", 8 << 20);
    reception.receiver.wait_for("given_up", patience);
    put("large", 1 << 20);
    reception.receiver.wait_for("taken", patience);
    for name in ["kept", "large"] {
        assert!(same_file(&folder.join(name), &disk.join("folder").join(name)), "{name}");
    }
    reception.receiver.kill();
    session.end();
    drop(mounted);
}

#[test]
fn disks_of_1_and_48_mib_fill_up_and_the_reception_is_resumed() {
    disks_fill_up([1, 48]);
}

#[test]
#[ignore = "three minutes: .ci/long hostile"]
fn disks_of_1_to_64_mib_fill_up_and_the_reception_is_resumed() {
    disks_fill_up(1..=64);
}

/// A full disk is an error with a hint at one receiver, and has no effect on the other.
#[test]
fn a_full_disk_is_5_and_the_receiver_beside_it_finishes() {
    let Some(scene) = Scene::new(3) else { return };
    let file = scene.noise("image.raw", 8 << 20);
    let small = scene.path("small");
    std::fs::create_dir(&small).unwrap();
    let mounted = Mounted::tmpfs(&small, "4m");
    let session = scene.send(0, "--rate 50M", &file);
    let mut full = scene.receive_into(&small, 1, &session.ticket, "--timeout 30");
    let mut roomy = scene.receive(2, &session.ticket, "--timeout 30");
    let errors = full.finish(5);
    println!("{errors}");
    assert!(errors.contains("disk full") && errors.contains("free some space"), "{errors}");
    assert!(!small.join("image.raw").exists());
    // The same for a file that is written in place.
    let (to, staging) = (small.join("copy"), scene.path("staging"));
    let words = format!("recv --json {} --staging {} --to", session.ticket, staging.display());
    let words = words.split_whitespace().map(OsString::from).chain([to.clone().into()]);
    let mut full = scene.bench.start(1, &words.collect::<Vec<_>>());
    let (code, errors) = full.finish(Duration::from_secs(30));
    assert_eq!(code, Some(5), "{errors}");
    assert!(errors.contains("(8388608 bytes wanted, 4"), "{errors}");
    assert!(!errors.contains("final name"), "{errors}");
    assert!(!to.exists(), "the next run does not find it");
    assert_eq!(full.last("summary").unwrap()["bytes"], 0);
    roomy.complete();
    assert!(same_file(&file, &scene.received(2).join("image.raw")));
    drop(mounted);
    session.end();
}

/// Another program fills the disk while a file is written in place to it: tmpfs does not reserve
/// what it has room for. The same command and `--existing replace` go on when there is room.
#[test]
fn a_disk_that_becomes_full_during_a_reception_in_place_is_5_and_costs_nothing() {
    let Some(scene) = Scene::new(2) else { return };
    let file = scene.noise("image.raw", 8 << 20);
    let small = scene.path("small");
    std::fs::create_dir(&small).unwrap();
    let mounted = Mounted::tmpfs(&small, "12m");
    let session = scene.send(0, "--rate 20M", &file);
    let (to, staging) = (small.join("copy"), scene.path("staging"));
    let receive = |option: &str| {
        let (ticket, staging) = (&session.ticket, staging.display());
        let words = format!("recv --json {ticket} --timeout 60 --staging {staging} {option} --to");
        let words = words.split_whitespace().map(OsString::from).chain([to.clone().into()]);
        scene.bench.start(1, &words.collect::<Vec<_>>())
    };
    let mut full = receive("");
    let blocks = || to.metadata().map_or(0, |metadata| metadata.blocks());
    while blocks() < (1 << 20) / 512 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let ballast = small.join("ballast");
    assert!(std::fs::write(&ballast, vec![1; 12 << 20]).is_err(), "the disk is full");
    let (code, errors) = full.finish(Duration::from_secs(60));
    println!("{errors}");
    assert_eq!(code, Some(5), "{errors}");
    assert!(errors.contains("disk full: no room for") && errors.contains(" bytes wanted, 0 free)"));
    assert!(errors.contains("--existing replace") && !errors.contains("are complete"), "{errors}");
    assert_eq!(full.last("summary").unwrap()["bytes"], 0);

    std::fs::remove_file(&ballast).unwrap();
    let mut again = receive("--existing replace");
    let (code, errors) = again.finish(Duration::from_secs(60));
    assert_eq!(code, Some(0), "{errors}");
    let resumed = again.last("resumed").unwrap()["symbols"].as_u64().unwrap();
    assert!(resumed > 500, "{resumed} symbols of {}", (8 << 20) / 1344);
    assert!(same_file(&file, &to));
    session.end();
    drop(mounted);
}

/// An attacker floods the group with malformed datagrams of every kind while a file is received.
#[test]
fn a_flood_of_broken_datagrams_costs_the_honest_transfer_nothing() {
    let Some(scene) = Scene::alone(3) else { return };
    let file = scene.noise("image.raw", 32 << 20);
    let session = scene.send(0, "--open --rate 50M", &file);
    // Without a source in the ticket, so that the receiver accepts packets of the attacker.
    let ticket = session.ticket.replace(&format!("{}@", Bench::address(0)), "");
    let mut stranger = scene
        .bench
        .command(2, std::env::current_exe().unwrap().to_str().unwrap())
        .args(["--exact", "bounds::stranger", "--ignored", "--nocapture"])
        .env("FONTANA_TEST_TSI", ticket.split(['/', '?']).nth(3).unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut reception = scene.receive(1, &ticket, "--timeout 60");
    let errors = reception.finish(0);
    let _ = stranger.kill();
    let _ = stranger.wait();
    let summary = reception.summary();
    assert!(same_file(&file, &scene.received(1).join("image.raw")));
    assert!(summary.number("malformed") > 10_000.0, "the stranger was heard");
    assert_eq!(summary.number("corrupt_blocks"), 0.0);
    println!("stderr: {} bytes", errors.len());
    assert!(errors.len() < 10_000, "{errors}");
    assert!(summary.reception_inefficiency() < 1.02);
    let peak = reception.receiver.peak_memory() >> 20;
    println!("peak memory: {peak} MiB");
    assert!(peak < 256);
    session.end();
}

/// The attacker of the test above: a process of its own, in its own namespace.
#[test]
#[ignore = "a process that another test starts"]
fn stranger() {
    let Ok(tsi) = std::env::var("FONTANA_TEST_TSI") else { return };
    let tsi: u32 = tsi.parse().unwrap();
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    for count in 0..2_000_000 {
        let mut datagram = match random(4) {
            0 => Vec::new(),
            1 => vec![0; random(1400)],
            _ => {
                // An LCT header of the session under attack (RFC 5651): V=1, S=1, O=1.
                let mut packet = vec![0x10, 0xA0, 4, 6, 0, 0, 0, 0];
                packet.extend(tsi.to_be_bytes());
                packet.extend((random(3) as u32).to_be_bytes());
                packet.resize(packet.len() + random(1400), 0);
                packet
            }
        };
        let length = datagram.len();
        let noise = if random(2) == 0 { 0 } else { 16.min(length) };
        for byte in datagram.iter_mut().skip(noise) {
            *byte = random(256) as u8;
        }
        let length = random(length + 1);
        datagram.truncate(length);
        let _ = socket.send_to(&datagram, GROUP);
        if count % 20 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
