//! Receptions beside strangers: hosts that send to the same group and port.

use crate::support::{Running, Sender, arguments, assert_says, noise, record, run};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Receives a file while `strangers` addresses repeat its head and manifest from the beginning. Its
/// sender starts later.
fn receive_among(strangers: u8) {
    let directory = tempfile::tempdir().unwrap();
    let (file, into) = (directory.path().join("file"), directory.path().join("into"));
    std::fs::write(&file, noise(2_000_000, 1)).unwrap();
    let (ticket, public, port) = record(&file, " --rate 40M");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let bind = |number| UdpSocket::bind(format!("127.0.1.{number}:0")).unwrap();
            let sockets: Vec<_> = (1..=strangers).map(bind).collect();
            let until = Instant::now() + Duration::from_secs(60);
            while !is_over.load(Ordering::Relaxed) && Instant::now() < until {
                for packet in &public {
                    for socket in &sockets {
                        // Refused while no socket listens.
                        let _ = socket.send_to(packet, ("127.0.0.1", port));
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        });
        let words = format!("recv {ticket} -i lo --timeout 20 -o");
        let receiver = Running::start(&arguments(&words, &[&into]));
        // The strangers have all places by then.
        std::thread::sleep(Duration::from_secs(1));
        let sender = Sender::start(&format!("--open --to 127.0.0.1:{port} --rate 40M"), &[&file]);
        let received = receiver.wait();
        is_over.store(true, Ordering::Relaxed);
        sender.finish();
        received.expect(0);
    });
    assert!(std::fs::read(into.join("file")).unwrap() == std::fs::read(&file).unwrap());
}

#[test]
fn strangers_that_repeat_head_and_manifest_do_not_lock_the_sender_out() {
    receive_among(16);
    receive_among(64);
}

/// A packet of session 77 with a symbol of an object, as any host can send it.
fn junk(number: u32) -> Vec<u8> {
    let mut packet = vec![0x10, 0xA0, 0x04, 0x06];
    for word in [number, 77, 1, number % 100] {
        packet.extend(word.to_be_bytes());
    }
    packet.resize(1_200, 0x5A);
    packet
}

#[test]
fn junk_does_not_put_off_the_end_of_a_silent_reception() {
    let directory = tempfile::tempdir().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let manifest = "16b4e25bc9f801dd10ee81928bfb74718eb1d23ad953d0116b99e39770668c32";
    let ticket = format!("fontana://127.0.0.1:{port}/77?manifest={manifest}");
    let words = format!("recv {ticket} -i lo --silence 2 --timeout 30 -o");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let until = Instant::now() + Duration::from_secs(40);
            for number in 0.. {
                if is_over.load(Ordering::Relaxed) || Instant::now() > until {
                    return;
                }
                let _ = socket.send_to(&junk(number), ("127.0.0.1", port));
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let begin = Instant::now();
        let received = Running::start(&arguments(&words, &[directory.path()])).wait();
        is_over.store(true, Ordering::Relaxed);
        received.expect(75);
        assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    });
}

#[test]
fn a_session_of_a_newer_format_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let (file, into) = (directory.path().join("file"), directory.path().join("into"));
    std::fs::write(&file, noise(2_000, 1)).unwrap();
    let (ticket, public, port) = record(&file, "");
    let mut head = public.into_iter().find(|packet| packet[15] == 0xFF).unwrap();
    // The format follows the magic number, after a header with EXT_FTI and the payload id.
    assert_eq!(head[36..44], *b"FONTANA\x01");
    head[43] = 3;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let until = Instant::now() + Duration::from_secs(30);
            while !is_over.load(Ordering::Relaxed) && Instant::now() < until {
                let _ = socket.send_to(&head, ("127.0.0.1", port));
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let words = format!("recv {ticket} -i lo --json --timeout 2 -o");
        let received = Running::start(&arguments(&words, &[&into])).wait();
        is_over.store(true, Ordering::Relaxed);
        let received = received.expect(7);
        let rejected = received.event("rejected");
        assert_eq!((&rejected["reason"], &rejected["number"]), (&"newer_format".into(), &3.into()));
    });
}

/// A signature expires after its sender has stopped, and not while it runs.
#[test]
fn a_signature_expires_when_its_sender_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (file, key) = (path("file"), path("key"));
    std::fs::write(&file, noise(20_000, 1)).unwrap();
    run(&arguments("keygen", &[&key])).expect(0);
    let signed = format!(" --rate 1M --expires 10s --sign {}", key.display());
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let running = Sender::start(&format!("--open --to 127.0.0.1:{port}{signed}"), &[&file]);
    let (ticket, public, stopped_port) = record(&file, &signed);
    std::thread::sleep(Duration::from_millis(11_500));

    // A ticket that names the manifest is not out of date.
    let by_key = |ticket: &str| ticket.split("&manifest=").next().unwrap().to_owned();
    let words = format!("recv {} -i lo --timeout 20 -o", by_key(&running.ticket));
    run(&arguments(&words, &[&path("of the running one")])).expect(0);
    running.finish();

    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| repeat_until(&is_over, &public, stopped_port));
        let receive = |words: &str, name| {
            let words = format!("recv {} -i lo --timeout 3 {words} -o", by_key(&ticket));
            run(&arguments(&words, &[&path(name)]))
        };
        let refused = receive("", "of the stopped one");
        let accepted = receive("--accept expired", "in spite of that");
        is_over.store(true, Ordering::Relaxed);
        assert_says(&refused.expect(7), "expired", "--accept expired");
        // Head and manifest are accepted, and the rest is missing.
        accepted.expect(3);
    });
}

/// Sends `packets` again and again from an address of their own.
fn repeat_until(is_over: &AtomicBool, packets: &[Vec<u8>], port: u16) {
    let socket = UdpSocket::bind("127.0.2.1:0").unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !is_over.load(Ordering::Relaxed) && Instant::now() < until {
        for packet in packets {
            // Refused while no socket listens.
            let _ = socket.send_to(packet, ("127.0.0.1", port));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
