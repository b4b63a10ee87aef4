//! Real sessions over loopback multicast: real sockets, real files, no root.

use fontana::net::{Batch, Interfaces, ReceiveConfig, ReceiveSocket};
use fontana::wire::{Cci, ChannelGroups, Packet, Ticket, WebrcCci};
use fontana::{
    Addressing, Code, FontanaFormat, Format, Layering, LayeringScheme, Outcome, Rate, ReceiveEvent,
    ReceiveReport, Receiver, ReceiverBuilder, SendEvent, SendMode, SendReport, Sender,
    SimulatedLoss, TornadoCode, Verified,
};
use fontana_testing::noise;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// A group and port that no other test of this process uses.
fn addressing(test: u8) -> Addressing {
    let group = Ipv4Addr::new(239, 255, 91, test);
    let port = 20_000 + (std::process::id() % 20_000) as u16;
    let mut addressing = Addressing::to(SocketAddr::from((group, port)));
    addressing.interfaces = vec!["127.0.0.1".parse().unwrap()];
    addressing
}

fn receive(options: ReceiverBuilder) -> ReceiveReport {
    options.start().unwrap().join().unwrap()
}

/// Receives until it is complete or has this many symbols more, whatever the load of the machine.
/// Returns the symbols that it resumed with.
fn receive_more(symbols: u64, options: ReceiverBuilder) -> (ReceiveReport, Option<u64>) {
    let receiver = options.start().unwrap();
    let mut resumed = None;
    for event in receiver.events() {
        match event {
            ReceiveEvent::Resumed { symbols, .. } => resumed = Some(symbols),
            ReceiveEvent::Progress(progress) if progress.stats.fresh >= symbols => receiver.stop(),
            _ => {}
        }
    }
    (receiver.join().unwrap(), resumed)
}

fn options(ticket: &Ticket, addressing: &Addressing, directory: &Path) -> ReceiverBuilder {
    let options = Receiver::from_ticket(ticket).into_dir(directory);
    let options = options.addressing(addressing.clone());
    options.timeout(Some(Duration::from_secs(60)))
}

#[test]
fn several_files_arrive_bit_exact_at_clean_and_lossy_receivers() {
    let sizes = [0, 1, 1343, 1344, 1345, 700_000, 30_000_000];
    files_arrive(addressing(1), Code::RaptorQ, &sizes);
}

/// Two cycles for the receiver that loses most: a block has 255 symbols for 128.
#[test]
fn reed_solomon_blocks_arrive_at_clean_and_lossy_receivers() {
    files_arrive(addressing(4), Code::ReedSolomon, &[1, 1345, 5_000_000]);
}

/// Two blocks of 7813 symbols, and files that are too short for these codes.
#[test]
fn tornado_and_lt_blocks_arrive_at_clean_and_lossy_receivers() {
    let sizes = [1, 1345, 20_000_000];
    files_arrive(addressing(5), Code::Tornado(TornadoCode::Z), &sizes);
    files_arrive(addressing(6), Code::Lt, &sizes);
    files_arrive(addressing(7), Code::LtStrict, &sizes);
}

fn files_arrive(addressing: Addressing, code: Code, sizes: &[usize]) {
    let directory = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for (number, &size) in sizes.iter().enumerate() {
        let path = directory.path().join(format!("file {number}"));
        std::fs::write(&path, noise(size, number as u64)).unwrap();
        files.push(path);
    }
    let send = Sender::builder(files.clone())
        .addressing(addressing.clone())
        .code(code)
        .rate(Rate::bytes_per_second(40_000_000));
    let sender = send.start().unwrap();
    let ticket = &sender.description().ticket;
    let receivers: Vec<_> = [0.0, 0.1, 0.4]
        .into_iter()
        .enumerate()
        .map(|(number, probability)| {
            let into = directory.path().join(format!("receiver {number}"));
            let options = options(ticket, &addressing, &into)
                .simulated_loss(Some(SimulatedLoss { probability, seed: 7 }));
            (into, std::thread::spawn(move || receive(options)))
        })
        .collect();
    for (into, receiver) in receivers {
        let summary = receiver.join().unwrap();
        println!("{summary:?}");
        assert_eq!(summary.outcome, Outcome::Complete);
        assert_eq!(summary.verified, Some(Verified::Digest));
        for file in &files {
            let received = std::fs::read(into.join(file.file_name().unwrap())).unwrap();
            assert!(received == std::fs::read(file).unwrap(), "{file:?}");
        }
        assert_eq!(std::fs::read_dir(&into).unwrap().count(), files.len(), "nothing else is left");
    }
    sender.stop();
    let summary = sender.join().unwrap();
    println!("{summary:?}");
    assert_eq!(summary.outcome, Outcome::Interrupted);
}

/// The packets on each group of a session, as any member receives them: the congestion control
/// information of every packet, as a number. `channels`: number of groups, or 1 if it follows from
/// the scheme.
fn heard_on_each_group(scheme: LayeringScheme, channels: u8) -> (Vec<Vec<u32>>, SendReport) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    std::fs::write(&file, noise(3_000_000, 4)).unwrap();
    let send = Sender::builder(vec![file]).addressing(Addressing {
        channels: ChannelGroups::Consecutive(channels),
        ..addressing(100)
    });
    let mut format = FontanaFormat::default();
    format.layering = Some(Layering::new(scheme));
    // A small receive buffer holds all of it.
    let send = send.format(Format::Fontana(format)).rate(Rate::bytes_per_second(400_000));
    let session = send.prepare().unwrap();
    let ticket = session.description().ticket.clone();
    let interfaces = Interfaces::list().unwrap();
    let listen = |group| {
        let loopback = interfaces.loopback().unwrap();
        ReceiveSocket::open(&ReceiveConfig::multicast(group, ticket.port, loopback)).unwrap()
    };
    let mut taps: Vec<_> = ticket.channels.groups(ticket.group).map(listen).collect();
    let sender = session.start().unwrap();
    for event in sender.events() {
        if let SendEvent::Progress(progress) = event
            && progress.elapsed > Duration::from_millis(600)
        {
            sender.stop();
        }
    }
    let summary = sender.join().unwrap();
    let hear = |tap: &mut ReceiveSocket| {
        let (mut batch, mut heard) = (Batch::default(), Vec::new());
        while tap.recv_batch(Duration::from_millis(20), &mut batch).unwrap() > 0 {
            let packets = batch.iter().map(|(_, payload)| Packet::parse(payload).unwrap());
            heard.extend(packets.map(|packet| packet.header.cci.low32()));
        }
        heard
    };
    (taps.iter_mut().map(hear).collect(), summary)
}

#[test]
fn every_channel_of_a_layered_session_is_on_its_own_group() {
    let (heard, summary) = heard_on_each_group(LayeringScheme::Fixed, 4);
    let packets: Vec<_> = heard.iter().map(Vec::len).collect();
    assert_eq!(packets.iter().sum::<usize>() as u64, summary.stats.packets);
    // Layers of rates 1, 1, 2 and 4, to within a packet or two of each.
    for (&packets, rate) in packets.iter().zip([1, 1, 2, 4]) {
        let share = summary.stats.packets as usize * rate / 8;
        assert!(packets.abs_diff(share) <= 2 * rate, "{packets} of {share}");
    }
    // Numbered one by one on each.
    for numbers in heard {
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)), "{numbers:?}");
    }
    // WEBRC's packets say which channel they are of: the base channel is the first group and has
    // the last number.
    let (heard, summary) = heard_on_each_group(LayeringScheme::WebrcFast, 1);
    assert_eq!(heard.iter().map(Vec::len).sum::<usize>() as u64, summary.stats.packets);
    let base = heard.len() - 1;
    for (group, packets) in heard.iter().enumerate() {
        let channel = if group == 0 { base } else { group - 1 };
        let of = |&cci: &u32| usize::from(WebrcCci::parse(Cci::from_u32(cci)).unwrap().channel);
        assert!(packets.iter().all(|cci| of(cci) == channel), "{group}");
    }
    let waves = heard.iter().skip(1).filter(|packets| !packets.is_empty()).count();
    assert!(waves >= 5, "{waves} of {base} waves are sent");
}

/// At 65 % loss, 1.4 k symbols of a code with stretch factor 4 arrive before any is repeated; with
/// stretch factor 2 it would be 0.7 k.
#[test]
fn a_longer_stretch_serves_who_loses_most_without_repetition() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    std::fs::write(&file, noise(10_000_000, 3)).unwrap();
    let addressing = addressing(8);
    let send = Sender::builder(vec![file.clone()])
        .addressing(addressing.clone())
        .code(Code::Tornado(TornadoCode::new(4, 0).unwrap()))
        .rate(Rate::bytes_per_second(20_000_000));
    let sender = send.start().unwrap();
    let ticket = &sender.description().ticket;
    let into = directory.path().join("received");
    let options = options(ticket, &addressing, &into)
        .simulated_loss(Some(SimulatedLoss { probability: 0.65, seed: 1 }));
    let summary = receive(options);
    sender.stop();
    sender.join().unwrap();
    println!("{summary:?}");
    assert_eq!(summary.outcome, Outcome::Complete);
    assert_eq!(summary.progress.stats.duplicates, 0);
    assert!(std::fs::read(into.join("image")).unwrap() == std::fs::read(&file).unwrap());
}

#[test]
fn a_receiver_that_is_stopped_goes_on_where_it_was() {
    stopped_receivers_go_on(addressing(2), Code::RaptorQ, 1.12);
}

/// These codes take a random number of symbols more: see `docs/codes.md`.
#[test]
fn so_does_one_of_tornado_blocks() {
    stopped_receivers_go_on(addressing(9), Code::Tornado(TornadoCode::Z), 1.15);
}

#[test]
fn so_does_one_of_raptor_blocks() {
    stopped_receivers_go_on(addressing(16), Code::Raptor, 1.12);
}

#[test]
fn so_does_one_of_lt_blocks() {
    stopped_receivers_go_on(addressing(10), Code::Lt, 1.25);
    stopped_receivers_go_on(addressing(11), Code::LtStrict, 1.12);
}

fn stopped_receivers_go_on(addressing: Addressing, code: Code, most_inefficiency: f64) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    std::fs::write(&file, noise(20_000_000, 1)).unwrap();
    // Symbols count until a thread has solved their block. A tenth of a second in which a busy host
    // does not run it is 2 % of them. A run whose symbols were lost would be 13 %.
    let send = Sender::builder(vec![file.clone()])
        .addressing(addressing.clone())
        .code(code)
        .rate(Rate::bytes_per_second(5_000_000));
    let sender = send.start().unwrap();
    let ticket = &sender.description().ticket;
    let into = directory.path().join("received");
    let mut lives = Vec::new();
    let mut resumed = Vec::new();
    for (seed, symbols) in [(1, 2_000), (2, 2_000), (3, u64::MAX)] {
        let options = options(ticket, &addressing, &into)
            .simulated_loss(Some(SimulatedLoss { probability: 0.2, seed }));
        let (summary, symbols) = receive_more(symbols, options);
        lives.push(summary);
        resumed.extend(symbols);
    }
    sender.stop();
    sender.join().unwrap();
    println!("{resumed:?}");
    assert_eq!(lives[0].outcome, Outcome::Interrupted);
    assert_eq!(lives[1].outcome, Outcome::Interrupted);
    assert_eq!(lives[2].outcome, Outcome::Complete);
    assert_eq!(resumed.len(), 2);
    assert!(resumed[0] > 1_000 && resumed[1] > resumed[0]);
    // All runs together needed little more than the file. Symbols that arrived twice do not count:
    // while no receiver runs the sender goes on, and it repeats Tornado's symbols after a cycle.
    let progress = &lives[2].progress;
    println!("{code:?}: {:?} {:?}", progress.reception_inefficiency(), progress.stats);
    let symbols = resumed[1] + progress.stats.fresh;
    let inefficiency = symbols as f64 / progress.source_symbols as f64;
    assert!(inefficiency < most_inefficiency, "{code:?}: {inefficiency}");
    assert!(std::fs::read(into.join("image")).unwrap() == std::fs::read(&file).unwrap());
    assert_eq!(std::fs::read_dir(&into).unwrap().count(), 1, "staging is gone");
}

/// The state after a power failure: files as they were when they were last synced, and a journal
/// that has later entries.
#[test]
fn a_machine_that_was_switched_off_goes_on_with_what_was_synced() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    std::fs::write(&file, noise(20_000_000, 2)).unwrap();
    let addressing = addressing(3);
    let send = Sender::builder(vec![file.clone()])
        .addressing(addressing.clone())
        .rate(Rate::bytes_per_second(10_000_000));
    let sender = send.start().unwrap();
    let ticket = &sender.description().ticket;
    let into = directory.path().join("received");
    let life = |symbols| {
        let options = options(ticket, &addressing, &into)
            .simulated_loss(Some(SimulatedLoss { probability: 0.2, seed: 1 }));
        receive_more(symbols, options)
    };
    // From the last source symbols to the first repair symbols.
    std::thread::sleep(Duration::from_millis(1600));
    let (first, _) = life(2_000);
    let list = |directory: &Path| -> Vec<_> {
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let staging = list(&into).remove(0);
    // A receiver that is stopped syncs before it ends.
    let synced: Vec<_> =
        list(&staging).into_iter().map(|p| (std::fs::read(&p).unwrap(), p)).collect();
    let journal = staging.join("journal");
    let before = std::fs::read(&journal).unwrap().len();
    let (second, resumed) = life(2_000);
    assert_eq!([first.outcome, second.outcome], [Outcome::Interrupted; 2]);
    let later = std::fs::read(&journal).unwrap();
    assert!(later.len() > before + 1_000, "{} {before}", later.len());
    list(&staging).iter().for_each(|path| std::fs::remove_file(path).unwrap());
    for (bytes, path) in synced {
        std::fs::write(path, bytes).unwrap();
    }
    // Without the end, which was synced again.
    let mut on_medium = later[..before + (later.len() - before) * 3 / 4].to_vec();
    fontana_testing::written_before_a_restart(&mut on_medium);
    std::fs::write(journal, on_medium).unwrap();

    let (third, resumed_again) = life(u64::MAX);
    sender.stop();
    sender.join().unwrap();
    println!("{resumed:?} {resumed_again:?} {third:?}");
    assert_eq!(third.outcome, Outcome::Complete);
    assert!(resumed.unwrap() > 1_000);
    assert_eq!(resumed_again, resumed, "what the first life had synced, and nothing else");
    assert_eq!(third.progress.stats.corrupt_blocks, 0);
    assert!(std::fs::read(into.join("image")).unwrap() == std::fs::read(&file).unwrap());
    assert_eq!(std::fs::read_dir(&into).unwrap().count(), 1, "staging is gone");
}

/// A repaired disk, or an interrupted copy: files end before the ranges of the journal's entries.
#[test]
fn symbols_that_a_truncated_file_has_lost_are_received_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    std::fs::write(&file, noise(20_000_000, 4)).unwrap();
    let addressing = addressing(12);
    let sender = Sender::builder([&file])
        .addressing(addressing.clone())
        .rate(Rate::bytes_per_second(10_000_000))
        .start()
        .unwrap();
    let ticket = &sender.description().ticket;
    let into = directory.path().join("received");
    let run = |symbols| {
        let options = options(ticket, &addressing, &into)
            .simulated_loss(Some(SimulatedLoss { probability: 0.2, seed: 1 }));
        receive_more(symbols, options)
    };
    // With a fifth lost, that takes more packets than there are source symbols: repair symbols are
    // among them, whenever the receiver joins.
    let (first, _) = run(12_000);
    assert_eq!(first.outcome, Outcome::Interrupted);
    let staging = std::fs::read_dir(&into).unwrap().next().unwrap().unwrap().path();
    for (name, percent) in [("0", 90), ("0.repair", 1)] {
        let staged = std::fs::File::options().write(true).open(staging.join(name)).unwrap();
        staged.set_len(staged.metadata().unwrap().len() * percent / 100).unwrap();
    }
    let (second, resumed) = run(u64::MAX);
    sender.stop();
    sender.join().unwrap();
    println!("{} {resumed:?}", first.progress.stats.fresh);
    assert_eq!(second.outcome, Outcome::Complete);
    assert!(resumed.unwrap_or(0) < first.progress.stats.fresh);
    assert_eq!(second.progress.stats.corrupt_blocks, 0);
    assert!(std::fs::read(into.join("image")).unwrap() == std::fs::read(&file).unwrap());
    assert_eq!(std::fs::read_dir(&into).unwrap().count(), 1, "staging is gone");
}

/// Solved blocks take twice the memory: the others are in the scratch file.
#[test]
fn a_sender_with_little_memory_solves_each_block_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, noise(64 << 20, 5)).unwrap();
    let send = |scratch| {
        let sender = Sender::builder(vec![path.clone()])
            .addressing(addressing(40))
            .memory(32 << 20)
            .scratch(scratch)
            .block_symbols(2_000)
            .rate(Rate::bytes_per_second(100_000_000))
            .mode(SendMode::Push { repair_permille: 500 });
        let summary = sender.start().unwrap().join().unwrap();
        println!("{summary:?}");
        assert_eq!(summary.outcome, Outcome::Complete);
        summary
    };
    let summary = send(None);
    if summary.scratch_bytes == 0 {
        return fontana_testing::skip("a scratch file needs a directory on a disk");
    }
    // Repair symbols are half of the content.
    assert!(summary.solved_bytes <= (64 << 20) + (1 << 20), "{}", summary.solved_bytes);
    let without = send(Some(0));
    assert_eq!(without.scratch_bytes, 0);
    assert!(without.solved_bytes > 2 * summary.solved_bytes, "{}", without.solved_bytes);
}

/// What its memory has no room for before it has the manifest is on the disk.
#[test]
fn a_receiver_with_little_memory_that_joins_late_hears_few_symbols_in_vain() {
    const FILES: usize = 4_000;
    const BYTES: usize = 2_000;
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    for number in 0..FILES {
        std::fs::write(tree.join(format!("{number}")), noise(BYTES, number as u64)).unwrap();
    }
    let addressing = addressing(13);
    let sender = Sender::builder([&tree])
        .addressing(addressing.clone())
        .rate(Rate::bytes_per_second(5_000_000))
        .start()
        .unwrap();
    let ticket = &sender.description().ticket;
    std::thread::sleep(Duration::from_millis(700));
    let into = directory.path().join("received");
    let receiver = options(ticket, &addressing, &into).memory(32 << 20).start().unwrap();
    let report = receiver.join().unwrap();
    sender.stop();
    sender.join().unwrap();
    let stats = report.progress.stats;
    println!("{stats:?}");
    assert_eq!(report.outcome, Outcome::Complete);
    assert_eq!(stats.without_room, 0);
    assert!(stats.spilled > 1_000, "memory has room for 2 500");
    let taken = stats.control_packets + stats.fresh + stats.duplicates + stats.late;
    assert!(stats.session_packets - taken < stats.spilled / 2, "most of them are of use");
    assert_eq!(std::fs::read_dir(into.join("tree")).unwrap().count(), FILES);
    assert_eq!(std::fs::read_dir(&into).unwrap().count(), 1, "staging is gone");
}
