//! Hostile packets over real sockets: a sender and a receiver in processes of their own on the
//! loopback interface, and an attacker who receives the session too.

use super::not_run;
use super::process::{Process, program};
use super::transfer::Transfer;
use fontana::net::ThreadError;
use fontana::net::thread::spawn_scoped;
use fontana::seal::GroupKey;
use fontana_console::failure::Failure;
use fontana_lab::hostile::{Class, Direction, PacketSource};
use fontana_proto::SplitMix64;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Addresses that the attacker has beside the sender's.
const OTHER_ADDRESSES: u8 = 8;
/// Time between two bursts of an attacker.
const TICK: Duration = Duration::from_millis(2);

/// What protects a transfer, beside the manifest's hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    None,
    GroupKey,
    SymbolDigests,
}

/// The files of all transfers.
pub(super) struct Stage {
    pub(super) directory: tempfile::TempDir,
    pub(super) file: PathBuf,
    group_key: PathBuf,
    /// The publisher's key.
    key: PathBuf,
    rate_bits_per_second: u64,
}

/// What an attacker does during a transfer.
pub(super) struct Plan<'a> {
    pub(super) class: &'a Class,
    /// Packets to send.
    pub(super) variants: u32,
    pub(super) seed: u64,
    /// Time over which they are sent.
    pub(super) during: Duration,
}

impl Stage {
    /// A file of noise of `size` bytes, and keys.
    pub(super) fn new(size: u64, rate_bits_per_second: u64) -> Result<Self, Failure> {
        let make = || -> io::Result<Self> {
            let directory = tempfile::Builder::new().prefix("fontana-hostile-").tempdir()?;
            let [file, group_key, key] =
                ["noise", "group-key", "key"].map(|name| directory.path().join(name));
            write_noise(&file, size)?;
            Ok(Self { directory, file, group_key, key, rate_bits_per_second })
        };
        let stage = make().map_err(|error| not_run(&error))?;
        let (group_key, key) = (GroupKey::generate()?, fontana::generate_key()?);
        for (path, text) in
            [(&stage.group_key, group_key.to_file_text()), (&stage.key, key.to_file_text())]
        {
            fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)
                .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()))
                .map_err(|error| not_run(&error))?;
        }
        Ok(stage)
    }

    /// Sends the file to a receiver with this much memory, beside an attacker if there is a plan.
    pub(super) fn transfer(
        &self,
        plan: Option<&Plan<'_>>,
        protection: Protection,
        memory: u64,
    ) -> Result<Transfer, Failure> {
        let source = plan.map(|plan| PacketSource::new(plan.class, plan.seed)).transpose();
        let source = source.map_err(|error| not_run(&error))?.flatten();
        self.run(plan.zip(source), protection, memory).map_err(|error| not_run(&error))
    }

    fn run(
        &self,
        attack: Option<(&Plan<'_>, PacketSource)>,
        protection: Protection,
        memory: u64,
    ) -> io::Result<Transfer> {
        let spy = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let (mut sender, ticket) = self.start_sender(port, spy.local_addr()?, protection)?;
        let into = self.directory.path().join("into");
        let words = ["recv", &ticket, "-i", "lo", "--json", "--log", "info", "--timeout", "60"];
        let mut command = program()?;
        command.args(words).args(["--memory", &memory.to_string()]).arg("-o").arg(&into);
        if protection == Protection::GroupKey {
            command.arg("--group-key").arg(&self.group_key);
        }
        let mut receiver = Process::start(command)?;
        let target = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let is_over = AtomicBool::new(false);
        let mut transfer = Transfer::default();
        let result = std::thread::scope(|scope| {
            let attack = attack.map(|(plan, source)| {
                let (is_over, spy) = (&is_over, &spy);
                let run = move || send_hostile(source, plan, spy, target, is_over);
                spawn_scoped(scope, "attacker", run)
            });
            let ended = receiver.watch(&mut transfer);
            is_over.store(true, Ordering::Relaxed);
            if let Some(attack) = attack {
                let sent = attack.map_err(|ThreadError(error)| error)?.join();
                transfer.packets = sent.unwrap_or(Ok(0))?;
            }
            ended
        });
        sender.end();
        result?;
        let received = into.join("noise");
        transfer.is_exact = transfer.exit_code == Some(0) && same(&self.file, &received)?;
        fs::remove_dir_all(&into)?;
        Ok(transfer)
    }

    fn start_sender(
        &self,
        port: u16,
        spy: SocketAddr,
        protection: Protection,
    ) -> io::Result<(Process, String)> {
        let target = PacketSource::TARGET;
        let mut command = program()?;
        let to = format!("127.0.0.1:{port}/{0},{spy}/{0}", target.tsi);
        command
            .args(["send", "-i", "lo", "--json", "--one-way", "--to", &to])
            .args(["--symbol-size", &target.symbol_bytes.to_string()])
            .args(["--rate", &(2 * self.rate_bits_per_second).to_string()]);
        match protection {
            // Forged packets pass for the sender's.
            Protection::None => _ = command.arg("--open"),
            Protection::GroupKey => _ = command.arg("--group-key").arg(&self.group_key),
            Protection::SymbolDigests => {
                command.arg("--symbol-digests").arg("--sign").arg(&self.key);
            }
        }
        let mut sender = Process::start({
            command.arg(&self.file);
            command
        })?;
        let event = sender.event_with("ticket")?;
        Ok((sender, event["ticket"].as_str().unwrap_or_default().to_owned()))
    }
}

/// Writes bytes that no receiver can guess.
fn write_noise(path: &Path, size: u64) -> io::Result<()> {
    let mut out = BufWriter::new(fs::File::create_new(path)?);
    let mut random = SplitMix64::new(std::process::id().into(), 0);
    for _ in 0..size.div_ceil(8) {
        out.write_all(&random.next_u64().to_le_bytes())?;
    }
    out.flush()?;
    out.get_ref().set_len(size)
}

/// Sends the packets of a plan, evenly over its time.
fn send_hostile(
    mut source: PacketSource,
    plan: &Plan<'_>,
    spy: &UdpSocket,
    target: SocketAddr,
    is_over: &AtomicBool,
) -> io::Result<u64> {
    let variants = plan.variants;
    spy.set_nonblocking(true)?;
    let as_sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let others =
        (1..=OTHER_ADDRESSES).map(|host| UdpSocket::bind((Ipv4Addr::new(127, 0, 1, host), 0)));
    let others = others.collect::<io::Result<Vec<_>>>()?;
    let mut buffer = vec![0; 65_536];
    let mut sender = None;
    let (began, mut sent) = (Instant::now(), 0_u64);
    while !is_over.load(Ordering::Relaxed) && sent < u64::from(variants) {
        // Some of the latest honest packets: what the attacker cannot read in time is lost to it.
        for _ in 0..32 {
            let Ok((length, from)) = spy.recv_from(&mut buffer) else { break };
            sender = Some(from);
            source.observe(buffer.get(..length).unwrap_or_default());
        }
        let Some(sender) = sender else {
            std::thread::sleep(TICK);
            continue;
        };
        let share = began.elapsed().as_secs_f64() / plan.during.as_secs_f64().max(0.1);
        let due = (f64::from(variants) * share) as u64;
        while sent < due.min(variants.into()) {
            for packet in source.next_packets() {
                let other = others.get((sent % u64::from(OTHER_ADDRESSES)) as usize);
                let (socket, to) = match packet.direction {
                    Direction::FromTheSender => (&as_sender, target),
                    Direction::FromAnother => (other.unwrap_or(&as_sender), target),
                    Direction::ToTheSender => (&as_sender, sender),
                };
                // Refused while no socket listens.
                let _ = socket.send_to(&packet.bytes, to);
                sent += 1;
            }
        }
        std::thread::sleep(TICK);
    }
    Ok(sent)
}

pub(super) fn same(one: &Path, other: &Path) -> io::Result<bool> {
    Ok(fs::metadata(one)?.len() == fs::metadata(other)?.len() && fs::read(one)? == fs::read(other)?)
}
