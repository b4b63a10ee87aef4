//! `fc.tool`: the file transfer tool (sections 1.2, 4.1, 4.2.3 and 6.1), run with the library.
//! Files are sent from one directory to another over the loopback interface, whose packets are
//! observed.

use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::loopback;
use crate::row::Rows;
use fontana::{
    Addressing, CancellationToken, Code, FcastFormat, Format, Ordering, Outcome, Rate,
    ReceiveEvent, ReceiveFormat, Receiver, SendMode, Sender, SimulatedLoss,
};
use fontana_net::{Batch, ReceiveConfig, ReceiveSocket, thread};
use fontana_wire::Packet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// "The default 64 kilobyte fragment size", symbols of 512 bytes, k = 32.
const FRAGMENT: u64 = 65_536;
const SYMBOL: u16 = 512;
const BLOCK_SYMBOLS: u32 = 32;
/// Rate: all files take a second, and their repair symbols another.
const RATE_BYTES_PER_SECOND: u64 = 500_000;
const PATIENCE: Duration = Duration::from_secs(30);
/// Group of the sessions: administratively scoped, site-local (RFC 2365).
const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 255, 77, 76));

/// Names and lengths of the files. The first one has five fragments.
const FILES: [(&str, usize); 4] =
    [("tree/a/b/long", 300 << 10), ("tree/a/short", 5), ("tree/empty", 0), ("beside", 1_000)];
const FRAGMENTS: u32 = 5 + 1 + 1 + 1;

/// A transfer, and its options.
#[derive(Clone, Copy, Debug)]
struct ToolTransfer {
    name: &'static str,
    mode: SendMode,
    ordering: Ordering,
    /// Time from the start of the sender until the receiver joins.
    joins_after: Duration,
    loss: f64,
}

const TRANSFERS: [ToolTransfer; 3] = [
    // In a loop, to a receiver that joins late.
    ToolTransfer {
        name: "on demand",
        mode: SendMode::OnDemand,
        ordering: Ordering::Even,
        joins_after: Duration::from_secs(1),
        loss: 0.1,
    },
    // Once, with a FEC symbol for each source symbol, to a receiver that joined before.
    ToolTransfer {
        name: "push, kept",
        mode: SendMode::Push { repair_permille: 1_000 },
        ordering: Ordering::Even,
        joins_after: Duration::ZERO,
        loss: 0.1,
    },
    ToolTransfer {
        name: "push, object by object",
        mode: SendMode::Push { repair_permille: 1_000 },
        ordering: Ordering::Sequential { repair_permille: 1_000 },
        joins_after: Duration::ZERO,
        loss: 0.1,
    },
];

pub(crate) const REAL: Experiment = Experiment {
    id: "fc.tool",
    paper: "FCAST, section 6.1",
    what: "Four files, some of them in directories, one in five fragments of 64 kB, from one directory to \
           another as FCAST sessions (Reed-Solomon, k = 32, symbols of 512 bytes) by the library over real \
           sockets, to a receiver that loses 10 %; on demand and in push mode, all objects scheduled together and \
           one after the other. Only in this form: some seconds.",
    sweep: &SweepOf {
        name: "fc.tool",
        kind: Kind::Timed,
        cases: |_| TRANSFERS.len() as u32,
        run: |case| {
            let transfer = TRANSFERS.get(case.index as usize);
            transfer.and_then(|transfer| transfer.run(case).ok()).into_iter().collect()
        },
    },
    claims,
    exhibits: |_| Vec::new(),
};

/// A transfer, as it was observed.
#[derive(Serialize, Deserialize)]
struct Transferred {
    transfer: String,
    /// Whether the receiver has exactly the files.
    exact: bool,
    objects: u32,
    early: u32,
    /// Whether the sender ended by itself.
    ended: bool,
    packets: u32,
    malformed: u32,
    /// Share of packets of another object than the one before.
    changes: f64,
}

impl ToolTransfer {
    fn run(self, case: &Case) -> Result<Transferred, Box<dyn Error>> {
        let (here, there) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let roots = write_files(case, here.path())?;
        let loopback = loopback::interface()?;
        let listening = |port| ReceiveConfig::multicast(GROUP, port, &loopback);
        // A free port, chosen by the system.
        let mut tap = ReceiveSocket::open(&listening(0))?;
        let addressing = Addressing {
            interfaces: vec!["127.0.0.1".parse()?],
            ..Addressing::to(SocketAddr::new(GROUP, tap.port()))
        };
        let mut format = FcastFormat::default();
        format.slice_bytes = Some(FRAGMENT);
        let sender = Sender::builder(roots)
            .addressing(addressing.clone())
            .rate(Rate::bytes_per_second(RATE_BYTES_PER_SECOND))
            .mode(self.mode)
            .ordering(self.ordering)
            .code(Code::ReedSolomon)
            .block_symbols(BLOCK_SYMBOLS)
            .symbol_size(Some(SYMBOL))
            .format(Format::Fcast(format))
            .seed(case.seed)
            .prepare()?;
        let receiver = || {
            Receiver::builder()
                .addressing(addressing.clone())
                .format(ReceiveFormat::Fcast)
                .into_dir(there.path())
                .timeout(Some(PATIENCE))
                .simulated_loss(Some(SimulatedLoss { probability: self.loss, seed: case.seed }))
                .start()
        };
        let early = if self.joins_after.is_zero() { Some(receiver()?) } else { None };
        let hush = CancellationToken::new();
        let (sent, received, heard) = std::thread::scope(|scope| -> Result<_, fontana::Error> {
            let listen = || Heard::listen(&mut tap, &hush);
            let tapping = thread::spawn_scoped(scope, "lab tap", listen)?;
            let sent = sender.start().map(|sender| {
                std::thread::sleep(self.joins_after);
                let received = early.map_or_else(receiver, Ok).and_then(receive);
                // A sender in push mode ends by itself.
                if self.mode == SendMode::OnDemand || received.is_err() {
                    sender.stop();
                }
                (sender.join(), received)
            });
            hush.cancel();
            sent.map(|(sent, received)| (sent, received, tapping.join()))
        })?;
        let panicked = |_| "a thread of a transfer has panicked";
        let (sent, heard) = (sent?, heard.map_err(panicked)??);
        let Received { outcome, objects, early } = received?;
        let exact = outcome == Outcome::Complete && is_same(here.path(), there.path())?;
        Ok(Transferred {
            transfer: self.name.into(),
            exact,
            objects,
            early,
            ended: sent.outcome == Outcome::Complete,
            packets: heard.packets,
            malformed: heard.malformed,
            changes: f64::from(heard.changes) / f64::from(heard.packets.max(1)),
        })
    }
}

/// What a receiver reported.
struct Received {
    outcome: Outcome,
    objects: u32,
    /// Objects that were complete before the last symbol was received.
    early: u32,
}

fn receive(receiver: Receiver) -> Result<Received, fontana::Error> {
    let (mut objects, mut early, mut reception_complete) = (0, 0, false);
    for event in receiver.events() {
        match event {
            ReceiveEvent::ReceptionComplete => reception_complete = true,
            ReceiveEvent::ObjectDone(_) => {
                objects += 1;
                early += u32::from(!reception_complete);
            }
            _ => {}
        }
    }
    Ok(Received { outcome: receiver.join()?.outcome, objects, early })
}

/// Counters of an observer of a session.
#[derive(Debug, Default)]
struct Heard {
    packets: u32,
    /// Packets that are not ALC packets, or of no object.
    malformed: u32,
    /// Packets of another object than the one before.
    changes: u32,
}

impl Heard {
    fn listen(socket: &mut ReceiveSocket, hush: &CancellationToken) -> std::io::Result<Self> {
        let (mut heard, mut batch, mut last) = (Self::default(), Batch::default(), None);
        while !hush.is_cancelled() {
            socket.recv_batch(Duration::from_millis(20), &mut batch)?;
            for (_, payload) in batch.iter() {
                heard.packets += 1;
                match Packet::parse(payload) {
                    Ok(packet) if packet.header.toi.is_some() => {
                        heard.changes +=
                            u32::from(last.replace(packet.header.toi) != Some(packet.header.toi));
                    }
                    _ => heard.malformed += 1,
                }
            }
        }
        Ok(heard)
    }
}

/// Writes the files, with random content. Returns the paths for the sender.
fn write_files(case: &Case, directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut noise = case.stream(0);
    for (name, length) in FILES {
        let path = directory.join(name);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        let bytes: Vec<u8> = (0..length).map(|_| noise.next_u64() as u8).collect();
        std::fs::write(path, bytes)?;
    }
    Ok(["tree", "beside"].map(|root| directory.join(root)).into())
}

/// Whether `other` has exactly the files that were sent, with the bytes of `one`.
fn is_same(one: &Path, other: &Path) -> std::io::Result<bool> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![other.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(other).map(Path::to_owned).unwrap_or_default();
                found.insert(name, std::fs::read(path)?);
            }
        }
    }
    for (name, _) in FILES {
        if found.remove(Path::new(name)) != Some(std::fs::read(one.join(name))?) {
            return Ok(false);
        }
    }
    Ok(found.is_empty())
}

fn claims() -> Vec<Claim> {
    let of = |number: fn(&Transferred) -> f64, transfer: &'static str| {
        move |rows: &[Transferred]| rows.number(|row| row.transfer == transfer, number)
    };
    let [on_demand, kept, one_by_one] = TRANSFERS.map(|transfer| transfer.name);
    let exact = |transfer| of(|row| f64::from(u8::from(row.exact)), transfer);
    vec![
        Claim::shape(
            "on demand",
            "a receiver that joins late has every file, with its directories and every byte",
            quote("receivers can arrive at any time", "section 1.2"),
            Target::AtLeast(1.0),
            exact(on_demand),
        ),
        Claim::shape(
            "push",
            "the same for a receiver that joined before",
            quote("all the receivers must be ready before the transmission starts", "section 1.2"),
            Target::AtLeast(1.0),
            exact(kept),
        ),
        Claim::own(
            "ends",
            "and the sender ends by itself",
            Target::Equal(1.0),
            0.0,
            of(|row| f64::from(u8::from(row.ended)), kept),
        ),
        Claim::shape(
            "fragments",
            "objects of the transfer: one for each fragment",
            quote("Each fragment contains all the information required", "section 4.1"),
            Target::AtLeast(FRAGMENTS.into()),
            of(|row| row.objects.into(), kept),
        ),
        Claim::shape(
            "immediate",
            "objects on the disk before the last symbol had been received",
            quote("can be processed by the application as soon as", "section 4.1"),
            Target::AtLeast(1.0),
            of(|row| row.early.into(), kept),
        ),
        Claim::own(
            "packets",
            "packets that are none of ALC",
            Target::Equal(0.0),
            0.0,
            of(|row| row.malformed.into(), kept),
        ),
        Claim::shape(
            "keep",
            "share of packets of another object than the one before",
            quote("triggers the scheduling of all the symbols of all the", "section 4.2.3"),
            Target::AtLeast(0.5),
            of(|row| row.changes, kept),
        ),
        Claim::own(
            "push each",
            "objects that are pushed one by one are sent one after the other: the same share",
            Target::AtMost(0.1),
            0.0,
            of(|row| row.changes, one_by_one),
        ),
    ]
}
