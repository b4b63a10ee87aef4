//! The protocol without this crate's threads: a sender of `fontana-proto`, which has no input or
//! output, driven over a [`std::net::UdpSocket`]. It sends one file as a plain FLUTE session
//! without a code, once, from memory.
//!
//! ```text
//! cargo run --example custom_driver -- 127.0.0.1:7701 PATH
//! ```

use fontana_fec::codes::no_code::NoCode;
use fontana_fec::{FecScheme, Oti};
use fontana_proto::{
    ControlObject, DatagramBatch, Destination, Driver, Effect, Endpoint, Finished, Instant,
    JobRunner, SendDone, SendJob, SendMode, SendObject, Sender, SenderConfig, SenderEvent,
    SymbolId, TransmissionSchedule,
};
use fontana_wire::{Fdt, FdtExtension, FdtFile, NtpSeconds, Toi, Tsi};
use std::convert::Infallible;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

const TSI: Tsi = Tsi(1);
const FILE: Toi = Toi(1);
const SYMBOL_SIZE: u16 = 1024;

/// Runs the sender's jobs: the symbols are the file's bytes, so there is nothing to prepare.
struct InMemory;

impl JobRunner<SendJob> for InMemory {
    type Done = SendDone;
    type Error = Infallible;

    fn run(
        &mut self,
        _now: Instant,
        job: SendJob,
        _batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<SendDone>>, Infallible> {
        Ok(match job {
            SendJob::Prepare { batch, .. } => Some(Finished::now(SendDone::Prepared { batch })),
            SendJob::Release { .. } => None,
        })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "ADDRESS PATH";
    let mut arguments = std::env::args().skip(1);
    let address: std::net::SocketAddr = arguments.next().ok_or(usage)?.parse()?;
    let path = arguments.next().ok_or(usage)?;
    let file = std::fs::read(&path)?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;

    let mut driver = Driver::new(Sender::new(session(&path, file.len() as u64)?), InMemory);
    let layout = oti(file.len() as u64).layout()?;
    let symbol_of = |SymbolId { block, esi, .. }: SymbolId| {
        let start = layout.block_range(block.sbn).unwrap_or_default().start as usize;
        let mut symbols = file[start..].chunks(SYMBOL_SIZE.into());
        let mut symbol = symbols.nth(esi.0 as usize).unwrap_or_default().to_vec();
        symbol.resize(SYMBOL_SIZE.into(), 0);
        symbol
    };

    let start = std::time::Instant::now();
    let now = || Instant::ZERO + start.elapsed();
    let mut finished = false;
    while !finished {
        while let Some(effect) = driver.poll(now(), &DatagramBatch::EMPTY)? {
            match effect {
                Effect::Transmit { to: Destination::Channel(_), symbol } => {
                    let mut datagram = driver.header().to_vec();
                    datagram.extend(symbol.map(symbol_of).unwrap_or_default());
                    socket.send_to(&datagram, address)?;
                }
                Effect::Event(SenderEvent::Finished) => finished = true,
                _ => {}
            }
        }
        if let Some(due) = driver.endpoint.poll_timeout() {
            std::thread::sleep(due.saturating_since(now()).min(Duration::from_millis(100)));
            driver.endpoint.handle_timeout(now());
        }
    }
    println!("{:?}", driver.endpoint.stats());
    Ok(())
}

/// The geometry of the file, or of the table: symbols of one size, in one block if they fit.
fn oti(length: u64) -> Oti {
    let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 << 10 });
    Oti { transfer_length: length, symbol_size: SYMBOL_SIZE, scheme }
}

/// A session of one file, with the file delivery table that names it.
fn session(name: &str, length: u64) -> Result<SenderConfig, Box<dyn std::error::Error>> {
    let name = name.rsplit('/').next().unwrap_or(name);
    let entry = FdtFile {
        toi: FILE,
        content_location: name.to_owned(),
        content_length: Some(length),
        transfer_length: Some(length),
        fec_encoding_id: Some(0),
        oti: Some(oti(length)),
        ..FdtFile::default()
    };
    let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    let expires = NtpSeconds::from_unix_seconds(unix + 3600);
    let table = Fdt { expires, complete: true, files: vec![entry] }.emit();
    let extension = FdtExtension { version: FdtExtension::FLUTE_VERSION, instance_id: 1 };
    let table = ControlObject::new(Toi::FDT, oti(table.len() as u64), &table, Some(extension), 1)?;
    let object = SendObject { toi: FILE, layout: oti(length).layout()?, source_pass: true };
    Ok(SenderConfig {
        tsi: TSI,
        objects: vec![object],
        control: vec![table],
        mode: SendMode::Push { repair_permille: 1000 },
        schedule: TransmissionSchedule::Interleaved { grain: 1 },
        channels: None,
        rate_bytes_per_second: 2_000_000,
        packet_overhead: 28,
        round_symbols: 1 << 10,
        sequence_in_cci: false,
        fti_in_packets: false,
        seed: 1,
    })
}
