//! The protocol without this crate's threads: a sender of `fontana-proto`, which has no input or
//! output, driven over a [`std::net::UdpSocket`]. It sends one file as a plain FLUTE session
//! without a code, once, from memory.
//!
//! ```text
//! cargo run --example custom_driver -- 127.0.0.1:7701 PATH
//! ```

use fontana_fec::codes::no_code::NoCode;
use fontana_fec::{FecScheme, Oti};
use fontana_proto::memory::{MemoryContent, MemorySendRunner};
use fontana_proto::{
    ControlObject, DatagramBatch, Destination, Driver, Effect, Endpoint, Instant, Pacer, SendMode,
    SendObject, Sender, SenderConfig, SenderEvent, TransmissionSchedule,
};
use fontana_wire::{Fdt, FdtExtension, FdtFile, FluteVersion, NtpSeconds, Toi, Tsi};
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

const TSI: Tsi = Tsi(1);
const FILE: Toi = Toi(1);
const SYMBOL_SIZE: u16 = 1024;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "ADDRESS PATH";
    let mut arguments = std::env::args().skip(1);
    let address: std::net::SocketAddr = arguments.next().ok_or(usage)?.parse()?;
    let path = arguments.next().ok_or(usage)?;
    let file = std::fs::read(&path)?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;

    let length = file.len() as u64;
    let mut content = MemoryContent::default();
    content.insert(FILE, oti(length).layout()?, file);
    let sender = Sender::new(session(&path, length)?);
    let mut driver = Driver::new(sender, MemorySendRunner::new(content));

    let start = std::time::Instant::now();
    let now = || Instant::ZERO + start.elapsed();
    let mut finished = false;
    while !finished {
        while let Some(effect) = driver.poll(now(), &DatagramBatch::EMPTY)? {
            match effect {
                Effect::Transmit { to: Destination::Channel(_), symbol } => {
                    let mut datagram = driver.header().to_vec();
                    if let Some(symbol) = symbol {
                        driver.runner.write_symbol(&symbol, &mut datagram);
                    }
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
    let table = Fdt { expires, complete: true, files: vec![entry] }.emit(FluteVersion::V2);
    let extension = FdtExtension { version: FluteVersion::V2.number(), instance_id: 1 };
    let table = ControlObject::new(Toi::FDT, oti(table.len() as u64), &table, Some(extension), 1)?;
    let object = SendObject { toi: FILE, layout: oti(length).layout()?, source_pass: true };
    Ok(SenderConfig {
        tsi: TSI,
        objects: vec![object],
        first: Vec::new(),
        control: vec![table],
        mode: SendMode::Push { repair_permille: 1000 },
        schedule: TransmissionSchedule::Interleaved { grain: 1 },
        channels: None,
        rate_bytes_per_second: 2_000_000,
        packet_overhead: 28,
        peak_window: Pacer::PEAK_WINDOW,
        round_symbols: 1 << 10,
        opening_permille: 0,
        pass_start: 0,
        sequence_in_cci: false,
        omit_padding: false,
        fti_in_packets: false,
        seal: None,
        seed: 1,
    })
}
