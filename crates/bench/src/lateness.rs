//! How late packets leave a sender to which many receivers report and strangers send junk, and how
//! long a request waits for its first symbol. The packets' times are those of `tcpdump`.

use crate::net::missing;
use crate::numbers::within;
use crate::reports::{REPORTS_PER_SECOND, receiver_id, report_of};
use fontana::reports::{Expected, NoCipher};
use fontana::wire::{
    BlockNeed, Feedback, InstanceId, Packet, ReceiverReport, ReceiverState, RepairRequest,
    RollCall, RollCallEcho, SealId, SecretKey, Toi, UnverifiedRollCall,
};
use fontana::{Addressing, FontanaFormat, Format, Rate, ReportCollection, SendMode, Sender};
use fontana_fec::EncodingId;
use fontana_net::{Interfaces, ReceiveConfig, ReceiveSocket};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const USAGE: &str = "\
usage: fontana-bench lateness [--receivers N] [--junk N] [--mbit N] [--seconds N] [--json]

  lateness  how late packets leave while N receivers report, 200 a second, and strangers send
            --junk reports a second; how long a request waits for its first symbol. As root";

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 93, 7);
const PORT: u16 = 7791;
/// Bytes of headers below UDP, which a rate counts.
const HEADERS: u64 = 28;
const MTU: u64 = 1_500;
/// Receivers of an address: a host may have a few hundred, where nothing authenticates them.
const PER_ADDRESS: u32 = 250;
/// Requests whose answers are timed, at each rate.
const REQUESTS: usize = 20;

/// Roll calls that are answered by a report alone, before the first request.
const REPORTED: u64 = 5;

/// What is measured.
#[derive(Debug, PartialEq)]
pub(crate) struct LatenessPlan {
    receivers: u32,
    junk: u32,
    /// `None`: four fifths of what the sender reaches beside the listener.
    mbit: Option<u64>,
    seconds: u64,
}

impl LatenessPlan {
    /// Parses what follows `lateness`, except `--json`.
    ///
    /// # Errors
    /// The mistake.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut plan = Self { receivers: 60_000, junk: 20_000, mbit: None, seconds: 10 };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--receivers" => plan.receivers = within(&value()?, 1..=1 << 16)? as u32,
                "--junk" => plan.junk = within(&value()?, 0..=1_000_000)? as u32,
                "--mbit" => plan.mbit = Some(within(&value()?, 1..=100_000)?),
                "--seconds" => plan.seconds = within(&value()?, 1..=600)?,
                other => return Err(format!("what is {other}?")),
            }
        }
        Ok(plan)
    }
}

/// Measures, and prints each row.
///
/// # Errors
/// What is missing, or failed.
pub(crate) fn run(plan: &LatenessPlan, is_json: bool) -> Result<(), String> {
    let lacking = missing(&[("tcpdump", "tcpdump")]);
    if !lacking.is_empty() {
        return Err(format!("the bench needs: apt-get install {}", lacking.join(" ")));
    }
    let mbit = match plan.mbit {
        Some(mbit) => mbit,
        None => (0.8 * highest_rate()?) as u64,
    };
    for (receivers, junk) in [(0, 0), (plan.receivers, 0), (plan.receivers, plan.junk)] {
        let late = Crowded { receivers, junk, mbit, seconds: plan.seconds }.measure()?;
        let us = |share: f64| quantile(&late.nanos, share) as f64 / 1e3;
        show(
            &json!({
                "mbit": mbit,
                "receivers": receivers,
                "junk_per_second": junk,
                "packets": late.packets,
                "sent_share": late.sent_share,
                "p50_us": us(0.5),
                "p99_us": us(0.99),
                "longest_us": us(1.0),
            }),
            is_json,
        );
    }
    for kbit in [200, 1_000, 10_000, 100_000] {
        let mut waits = first_symbols(kbit)?;
        waits.sort_unstable();
        let ms = |share: f64| quantile(&waits, share) as f64 / 1e6;
        show(
            &json!({
                "kbit": kbit,
                "requests": waits.len(),
                "median_ms": ms(0.5),
                "longest_ms": ms(1.0),
            }),
            is_json,
        );
    }
    Ok(())
}

fn show(row: &serde_json::Value, is_json: bool) {
    if is_json {
        return println!("{row}");
    }
    let fields = row.as_object().into_iter().flatten();
    let fields: Vec<_> = fields.map(|(name, value)| format!("{name} {value}")).collect();
    println!("{}", fields.join("  "));
}

/// Of ascending values.
fn quantile(values: &[i64], share: f64) -> i64 {
    let at = (share * values.len().saturating_sub(1) as f64).round() as usize;
    values.get(at).copied().unwrap_or(0)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A session that asks for reports, of whatever authority.
fn sender(bytes: usize, rate: Rate, mode: SendMode) -> Result<Sender, String> {
    let mut reports = ReportCollection::default();
    reports.expected = Expected::Anyone;
    reports.trust_unauthenticated = true;
    reports.address = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let mut format = FontanaFormat::default();
    format.signer = Some(SecretKey::from_seed(&[7; 32]));
    format.reports = Some(reports);
    let mut addressing = Addressing::to(SocketAddr::from((GROUP, PORT)));
    addressing.interfaces = vec!["127.0.0.1".parse().map_err(text)?];
    let content: Vec<u8> = (0..bytes as u64).map(|at| ((at * 37) >> 3) as u8).collect();
    let session = Sender::from_bytes("noise", content)
        .addressing(addressing)
        .rate(rate)
        .controlled_network(true)
        .mode(mode)
        .format(Format::Fontana(format))
        .start()
        .map_err(text)?;
    // Events that are not taken stop a session.
    let events = session.events();
    thread::spawn(move || events.for_each(drop));
    Ok(session)
}

/// The rate that the sender reaches beside the listener of this bench, in Mbit/s.
fn highest_rate() -> Result<f64, String> {
    let mut listener = Listener::open()?;
    let session = sender(64 << 20, Rate::mbit(100_000), SendMode::OnDemand)?;
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(4) {
        listener.next()?;
    }
    session.stop();
    let report = session.join().map_err(text)?;
    Ok(report.stats.wire_bytes as f64 * 8.0 / 1e6 / report.elapsed.as_secs_f64())
}

/// What receivers know of the session: its last roll call.
struct Heard {
    instance: InstanceId,
    collector: SocketAddr,
    round: AtomicU32,
    serial: AtomicU32,
}

impl From<&RollCall> for Heard {
    fn from(call: &RollCall) -> Self {
        let (round, serial) = (call.round.into(), (call.serial as u32).into());
        Self { instance: call.instance, collector: call.collector, round, serial }
    }
}

/// Hears the packets of the session.
struct Listener {
    socket: ReceiveSocket,
    batch: fontana_net::Batch,
}

impl Listener {
    fn open() -> Result<Self, String> {
        let interfaces = Interfaces::list().map_err(text)?;
        let selector = "127.0.0.1".parse().map_err(text)?;
        let interface = interfaces.select(&selector).map_err(text)?;
        let config = ReceiveConfig::multicast(GROUP.into(), PORT, interface);
        let socket = ReceiveSocket::open(&config).map_err(text)?;
        Ok(Self { socket, batch: fontana_net::Batch::with_size(1 << 20) })
    }

    /// The next roll call.
    fn next(&mut self) -> Result<Option<RollCall>, String> {
        self.batch.clear();
        self.socket.recv_batch(Duration::from_millis(100), &mut self.batch).map_err(text)?;
        let calls = self.batch.iter().filter(|(_, bytes)| RollCall::may_be(bytes));
        let calls = calls.filter_map(|(_, bytes)| {
            let packet = Packet::parse(bytes).ok()?;
            let symbol = packet.payload(EncodingId::NO_CODE).ok()??.symbol;
            Some(UnverifiedRollCall::parse(symbol).ok()?.claimed().clone())
        });
        Ok(calls.last())
    }

    /// The objects of the next packets.
    fn objects(&mut self) -> Result<Vec<Toi>, String> {
        self.batch.clear();
        self.socket.recv_batch(Duration::from_millis(100), &mut self.batch).map_err(text)?;
        let packets = self.batch.iter().filter_map(|(_, bytes)| Packet::parse(bytes).ok());
        Ok(packets.filter_map(|packet| packet.header.toi).collect())
    }

    /// The object with the content.
    fn content(&mut self) -> Result<Toi, String> {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(60) {
            let is_content = |toi: &Toi| *toi != Toi::FDT && *toi < Toi::FIRST_RESERVED;
            if let Some(content) = self.objects()?.into_iter().find(is_content) {
                return Ok(content);
            }
        }
        Err("no content was heard".to_owned())
    }

    fn first(&mut self) -> Result<RollCall, String> {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(10) {
            if let Some(call) = self.next()? {
                return Ok(call);
            }
        }
        Err("no roll call was heard".to_owned())
    }
}

/// A session with a crowd.
struct Crowded {
    receivers: u32,
    junk: u32,
    mbit: u64,
    seconds: u64,
}

/// How late packets were.
struct Late {
    /// Ascending.
    nanos: Vec<i64>,
    packets: usize,
    /// What was sent, of the rate.
    sent_share: f64,
}

impl Crowded {
    fn measure(&self) -> Result<Late, String> {
        let mut listener = Listener::open()?;
        let session = sender(64 << 20, Rate::mbit(self.mbit), SendMode::OnDemand)?;
        let call = listener.first()?;
        let heard = Heard::from(&call);
        let stop = AtomicBool::new(false);
        let file = tempfile::NamedTempFile::new().map_err(text)?;
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    if let Ok(Some(call)) = listener.next() {
                        heard.round.store(call.round, Ordering::Relaxed);
                        heard.serial.store(call.serial as u32, Ordering::Relaxed);
                    }
                }
            });
            let result = self.crowd(&heard, file.path(), scope, &stop);
            stop.store(true, Ordering::Relaxed);
            result
        })?;
        session.stop();
        let report = session.join().map_err(text)?;
        let known = report.crowd.map_or(0, |crowd| crowd.summary.known);
        if known < u64::from(self.receivers) * 9 / 10 {
            return Err(format!("{known} of {} receivers are known", self.receivers));
        }
        self.lateness(&captured(file.path())?)
    }

    /// All receivers report, and go on, and strangers begin. Captures the packets of the sender
    /// then.
    fn crowd<'scope>(
        &'scope self,
        heard: &'scope Heard,
        file: &Path,
        scope: &'scope thread::Scope<'scope, '_>,
        stop: &'scope AtomicBool,
    ) -> Result<(), String> {
        let sockets: Vec<UdpSocket> = (0..=self.receivers / PER_ADDRESS)
            .map(|number| UdpSocket::bind((Ipv4Addr::new(127, 0, 1, number as u8 + 1), 0)))
            .collect::<Result<_, _>>()
            .map_err(text)?;
        let tell = move |number: u32, counter| {
            let bytes = report(heard, number, counter);
            let socket = &sockets[(number / PER_ADDRESS) as usize];
            let _ = socket.send_to(&bytes, heard.collector);
        };
        for number in 0..self.receivers {
            tell(number, 0);
            thread::sleep(Duration::from_micros(100));
        }
        if self.receivers > 0 {
            scope.spawn(move || {
                for at in 0_u32.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    tell(at % self.receivers, 1 + u64::from(at / self.receivers));
                    thread::sleep(Duration::from_secs(1) / REPORTS_PER_SECOND);
                }
            });
        }
        if self.junk > 0 {
            let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, 2, 1), 0)).map_err(text)?;
            scope.spawn(move || {
                let (since, mut sent) = (Instant::now(), 0_u32);
                while !stop.load(Ordering::Relaxed) {
                    let due = (since.elapsed().as_secs_f64() * f64::from(self.junk)) as u32;
                    for number in sent..due {
                        let bytes = report(heard, (1 << 31) | number, 0);
                        let _ = socket.send_to(&bytes, heard.collector);
                    }
                    sent = due;
                    thread::sleep(Duration::from_micros(500));
                }
            });
        }
        thread::sleep(Duration::from_secs(1));
        let mut capture = capture(file)?;
        thread::sleep(Duration::from_secs(self.seconds));
        let _ = Command::new("kill").args(["-INT", &capture.id().to_string()]).status();
        capture.wait().map_err(text)?;
        Ok(())
    }

    /// The lateness of each packet, beside the one that was the earliest until then.
    fn lateness(&self, packets: &[Captured]) -> Result<Late, String> {
        let (Some(first), Some(last)) = (packets.first(), packets.last()) else {
            return Err("nothing was captured".to_owned());
        };
        // Several packets of one call to the system are captured as one.
        let full = packets.iter().map(|packet| packet.bytes).filter(|&bytes| bytes <= MTU).max();
        let full = full.unwrap_or(MTU);
        let on_wire = |packet: &Captured| packet.bytes + HEADERS * packet.bytes.div_ceil(full);
        let before_last = packets.iter().take(packets.len() - 1).map(on_wire).sum::<u64>();
        let elapsed = (last.nanos - first.nanos).max(1) as f64;
        // By the rate that was sent: a rate that differs by a thousandth is no lateness.
        let nanos_per_byte = elapsed / before_last.max(1) as f64;
        let sent = 8e3 / nanos_per_byte / self.mbit as f64;
        let (mut bytes, mut earliest, mut late) = (0_u64, i64::MAX, Vec::new());
        for packet in packets {
            let due = (bytes as f64 * nanos_per_byte) as i64;
            let offset = packet.nanos - first.nanos - due;
            earliest = earliest.min(offset);
            late.push(offset - earliest);
            bytes += on_wire(packet);
        }
        late.sort_unstable();
        Ok(Late { nanos: late, packets: packets.len(), sent_share: sent })
    }
}

/// The report of a receiver, which is still receiving.
fn report(heard: &Heard, number: u32, counter: u64) -> Vec<u8> {
    let round = heard.round.load(Ordering::Relaxed);
    let report = report_of(number, round, ReceiverState::Receiving);
    let feedback = Feedback::Report(ReceiverReport { echo: echo(heard), ..report });
    feedback.emit(SealId::from(heard.instance), counter, None, None::<&NoCipher>)
}

fn echo(heard: &Heard) -> RollCallEcho {
    let serial = heard.serial.load(Ordering::Relaxed).into();
    RollCallEcho { serial, ..RollCallEcho::default() }
}

/// A packet, or several of one call to the system.
struct Captured {
    nanos: i64,
    /// Of UDP payload.
    bytes: u64,
}

/// Begins to capture what the sender sends.
fn capture(file: &Path) -> Result<Child, String> {
    let filter = format!("udp and dst port {PORT}");
    let mut child = Command::new("tcpdump")
        .args(["-i", "lo", "-n", "-s", "64", "-B", "65536", "--time-stamp-precision=nano", "-w"])
        .arg(file)
        .arg(filter)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(text)?;
    let stderr = child.stderr.take().ok_or("tcpdump says nothing")?;
    let mut line = String::new();
    let mut stderr = BufReader::new(stderr);
    while !line.contains("listening") {
        line.clear();
        if stderr.read_line(&mut line).map_err(text)? == 0 {
            return Err("tcpdump does not listen".to_owned());
        }
    }
    thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    Ok(child)
}

/// Reads a file of tcpdump: a header of 24 bytes, and 16 before each packet.
fn captured(file: &Path) -> Result<Vec<Captured>, String> {
    /// Ethernet, IP and UDP.
    const BEFORE_PAYLOAD: u64 = 42;
    let bytes = fs::read(file).map_err(text)?;
    let mut rest = bytes.get(24..).unwrap_or_default();
    let mut packets = Vec::new();
    while let Some((header, after)) = rest.split_first_chunk::<16>() {
        let word = |at: usize| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            u64::from(u32::from_ne_bytes(bytes))
        };
        let (seconds, nanos, kept, length) = (word(0), word(4), word(8), word(12));
        packets.push(Captured {
            nanos: (seconds * 1_000_000_000 + nanos) as i64,
            bytes: length.saturating_sub(BEFORE_PAYLOAD),
        });
        rest = after.get(kept as usize..).unwrap_or_default();
    }
    Ok(packets)
}

/// How long requests wait for their first symbol at this rate, in nanoseconds. The source symbols
/// were sent before. The receiver reports, as all do that request symbols: for one that does not, a
/// sender goes on with the symbols of all blocks.
fn first_symbols(kbit: u64) -> Result<Vec<i64>, String> {
    let mut listener = Listener::open()?;
    let rate = Rate::bits_per_second(kbit * 1_000);
    let session = sender(10_000, rate, SendMode::RepairOnDemand)?;
    let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, 1, 1), 0)).map_err(text)?;
    let Toi(toi) = listener.content()?;
    let (mut waits, mut counter) = (Vec::new(), 0);
    while waits.len() < REQUESTS {
        let call = listener.first()?;
        let heard = Heard::from(&call);
        counter += 2;
        socket.send_to(&report(&heard, 1, counter - 1), heard.collector).map_err(text)?;
        let Some(repair) = call.repair.as_ref().filter(|_| counter > 2 * REPORTED) else {
            continue;
        };
        let request = Feedback::Request(RepairRequest {
            receiver: receiver_id(1),
            round: repair.round,
            echo: RollCallEcho { serial: call.serial, ..RollCallEcho::default() },
            loss_ppm: 0,
            mute_us: 0,
            may_lack_more: false,
            blocks: vec![BlockNeed { toi: toi as u32, sbn: 0, symbols: 1 }],
            maps: Vec::new(),
        });
        let bytes = request.emit(SealId::from(heard.instance), counter, None, None::<&NoCipher>);
        let since = Instant::now();
        socket.send_to(&bytes, heard.collector).map_err(text)?;
        while since.elapsed() < Duration::from_secs(2) {
            if listener.objects()?.contains(&Toi(toi)) {
                waits.push(since.elapsed().as_nanos() as i64);
                break;
            }
        }
    }
    session.stop();
    session.join().map_err(text)?;
    Ok(waits)
}
