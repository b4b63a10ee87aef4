//! One sender, receivers of every kind.

use crate::bench::Bench;
use crate::scene::{Scene, same_file};
use std::time::Duration;

/// 256 MiB to four receivers at 0, 1, 10 and 30 % loss, one of them late.
#[test]
fn four_receivers_get_256_mib_for_little_more_than_its_bytes() {
    let Some(scene) = Scene::alone(6) else { return };
    let losses_permille = [0, 10, 100, 300];
    for (host, &permille) in (1..).zip(&losses_permille) {
        scene.bench.count_sent(host);
        if permille > 0 {
            scene.bench.lose(host, permille);
        }
    }
    let size = 256 << 20;
    let file = scene.noise("image.raw", size);
    // One sender and four receivers share two cores here. The time from the last necessary symbol
    // to leaving the group depends on them; at a higher rate more packets arrive in it.
    let session = scene.send(0, "--rate 150M", &file);
    let receive = |host| (host, scene.receive(host, &session.ticket, "--one-way --timeout 120"));
    let mut receptions = vec![receive(1), receive(3), receive(4)];
    // The second one is late: it joins when about half has been sent.
    std::thread::sleep(Duration::from_millis(7200));
    receptions.push(receive(2));

    let (mut worst, mut sum, mut most_expected) = (0_f64, 0_f64, 0_f64);
    for (host, reception) in &mut receptions {
        let (host, summary) = (*host, reception.complete());
        assert!(same_file(&file, &scene.received(host).join("image.raw")), "host {host}");
        worst = worst.max(summary.reception_inefficiency());
        sum += summary.reception_inefficiency();
        let permille = losses_permille[host - 1];
        if permille > 0 {
            let (came, dropped) = scene.bench.losses(host);
            let measured = dropped as f64 / came as f64;
            println!("host {host}: {came} datagrams came, {dropped} dropped, {measured:.4}");
            let wanted = f64::from(permille) / 1000.0;
            assert!((measured - wanted).abs() < 0.01, "the rule did not see single datagrams");
        }
        if permille == 300 {
            // What had been sent, by the packets' own numbers, when the slowest receiver was
            // complete; without what a loaded host dropped before the receiver got it.
            let payload = summary.number("payload_bytes") / summary.number("packets");
            let dropped = summary.number("kernel_drops") + summary.number("queue_drops");
            most_expected = (summary.number("expected") - dropped) * payload;
        }
        let (igmp, other) = scene.bench.sent(host);
        println!("host {host}: sent {igmp} IGMP packets and {other} others");
        assert!(igmp > 0 && other == 0, "receivers send nothing but membership reports");
    }
    let mean = sum / receptions.len() as f64;
    let sent = most_expected / (size as f64 / 0.7);
    println!("inefficiency: worst {worst:.4}, mean {mean:.4}; sent {sent:.4} of size / 0.7");
    assert!(worst <= 1.03, "{worst}");
    assert!(mean <= 1.015, "{mean}");
    // 36 bytes of each packet are its seal, 2.7 %.
    assert!(sent <= 1.04 * 1.027, "{sent}");

    // The fifth host has joined nothing: the switch must not have sent it the session.
    let (joined, stranger) = (scene.bench.forwarded(1), scene.bench.forwarded(5));
    println!("switch sent {joined} bytes to a receiver and {stranger} to a host that did not join");
    assert!(joined > size && stranger < 1 << 20);
    session.end();
}

/// Both IP versions, any source and one source.
#[test]
fn groups_of_both_ip_versions_are_received_from_any_source_and_from_one() {
    let Some(scene) = Scene::new(3) else { return };
    let file = scene.noise("image.raw", 2 << 20);
    let groups =
        ["239.255.77.9:7701", "232.77.1.9:7701", "[ff15::77:1]:7701", "[ff35::8000:4d4d]:7701"];
    for (number, group) in groups.into_iter().enumerate() {
        let session = scene.send_to(group, 0, "--rate 40M", &file);
        let ticket = &session.ticket;
        let (source, from_any) = ticket.split_once('@').unwrap();
        let from_any = format!("fontana://{from_any}");
        let v6 = group.starts_with('[');
        let address = if v6 { Bench::address6(0) } else { Bench::address(0) };
        assert!(source.contains(&address), "{ticket}");
        // A source-specific group cannot be joined without a source (RFC 4607).
        let tickets = if number % 2 == 0 { vec![ticket, &from_any] } else { vec![ticket] };
        for (host, ticket) in (1..).zip(tickets) {
            let into = scene.path(&format!("{number}-{host}"));
            scene.receive_into(&into, host, ticket, "--timeout 30").complete();
            assert!(same_file(&file, &into.join("image.raw")), "{ticket}");
        }
        session.end();
    }
}
