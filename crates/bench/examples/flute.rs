//! Senders and a receiver that use the crate `flute`, as peers of `fontana-bench net` and of
//! `.ci/long foreign`.
//!
//! ```text
//! flute send GROUP:PORT ADDRESS FILE MBIT PERCENT
//! flute live GROUP:PORT ADDRESS DIRECTORY MBIT
//! flute receive GROUP:PORT ADDRESS DIRECTORY
//! ```
//!
//! ADDRESS is that of the interface. The sender has the file in memory, and repeats it without end
//! at MBIT per second. It is told the loss: with PERCENT 0 it uses no code, otherwise RaptorQ with
//! repair symbols for a loss of PERCENT. The receiver ends when it has the file. MD5 is off on both
//! sides, because the bench compares the files. `live` sends the files of a directory as it
//! changes: each state of a file is an object with an MD5, and tables expire after 20 seconds.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "an example: it reads the clock, and an error ends it"
)]

use flute::core::{Oti, UDPEndpoint};
use flute::receiver::writer::ObjectWriterFSBuilder;
use flute::receiver::{self, MultiReceiver};
use flute::sender::{self, CarouselRepeatMode, ObjectDesc, Sender, TransferConfig};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

/// Bytes of a symbol, a multiple of the alignment of RaptorQ.
const SYMBOL: u16 = 1400;
/// RFC 6330 numbers blocks with eight bits; the crate uses one number less.
const MAX_BLOCKS: usize = 250;
/// Source symbols of a block, unless the file needs longer ones.
const BLOCK: usize = 1000;
/// Requested size of the receive buffer: that of Fontana's receivers.
const RECEIVE_BUFFER: usize = 8 << 20;
/// Packets are sent at most this late in one burst.
const BURST: Duration = Duration::from_millis(20);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["send", to, address, file, mbit, percent] => {
            let rate = mbit.parse::<f64>().unwrap() * 1e6 / 8.0;
            let sender = sender(to.parse().unwrap(), Path::new(file), percent.parse().unwrap());
            send(sender, to.parse().unwrap(), address.parse().unwrap(), rate);
        }
        ["live", to, address, directory, mbit] => {
            let rate = mbit.parse::<f64>().unwrap() * 1e6 / 8.0;
            let to = to.parse().unwrap();
            let mut folder = Folder::new(to, Path::new(directory));
            send_with(to, address.parse().unwrap(), rate, |now| folder.read(now));
        }
        ["receive", from, address, directory] => {
            receive(from.parse().unwrap(), address.parse().unwrap(), Path::new(directory));
        }
        _ => {
            eprintln!("usage: flute send GROUP:PORT ADDRESS FILE MBIT PERCENT");
            eprintln!("       flute live GROUP:PORT ADDRESS DIRECTORY MBIT");
            eprintln!("       flute receive GROUP:PORT ADDRESS DIRECTORY");
            std::process::exit(2);
        }
    }
}

fn socket() -> Socket {
    Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap()
}

fn endpoint(group: SocketAddrV4) -> UDPEndpoint {
    UDPEndpoint::new(None, group.ip().to_string(), group.port())
}

/// The code for a loss: enough repair symbols for five standard deviations more than the mean.
fn code(symbols: usize, loss: f64) -> Oti {
    if loss == 0.0 {
        return Oti::new_no_code(SYMBOL, 64);
    }
    let block = BLOCK.max(symbols.div_ceil(MAX_BLOCKS));
    let sent = block as f64 / (1.0 - loss);
    let repair = sent - block as f64 + 5.0 * (sent * loss * (1.0 - loss)).sqrt() / (1.0 - loss);
    Oti::new_raptorq(SYMBOL, block as u16, repair.ceil() as u16 + 2, 1, 4).unwrap()
}

fn sender(group: SocketAddrV4, file: &Path, percent: f64) -> Sender {
    let bytes = std::fs::read(file).unwrap();
    let oti = code(bytes.len().div_ceil(SYMBOL.into()), percent / 100.0);
    // Blocks one after the other: the receiver writes them in order.
    let config = sender::Config { interleave_blocks: 1, ..Default::default() };
    let mut sender = Sender::new(endpoint(group), 1, &oti, &config);
    let transfer = TransferConfig {
        carousel_mode: Some(CarouselRepeatMode::DelayBetweenTransfers(Duration::ZERO)),
        ..Default::default()
    };
    let name = file.file_name().unwrap().to_str().unwrap();
    let location = url::Url::parse(&format!("file:///{name}")).unwrap();
    let media_type = "application/octet-stream";
    let object = ObjectDesc::create_from_buffer(bytes, media_type, &location, false, transfer);
    sender.add_object(0, object.unwrap()).unwrap();
    sender.publish(SystemTime::now()).unwrap();
    sender
}

/// A directory that changes.
struct Folder {
    sender: Sender,
    directory: PathBuf,
    /// The files that are sent: their lengths, times of change and TOIs.
    sent: BTreeMap<String, (u64, SystemTime, u128)>,
    looks_at: SystemTime,
    renews_at: SystemTime,
}

impl Folder {
    const LOOKS_EVERY: Duration = Duration::from_millis(200);
    /// Tables are renewed after half of this.
    const EXPIRES_AFTER: Duration = Duration::from_secs(20);

    fn new(group: SocketAddrV4, directory: &Path) -> Self {
        let again = Duration::from_secs(1);
        let config = sender::Config {
            interleave_blocks: 1,
            fdt_duration: Self::EXPIRES_AFTER,
            fdt_carousel_mode: CarouselRepeatMode::DelayBetweenTransfers(again),
            ..Default::default()
        };
        let sender = Sender::new(endpoint(group), 1, &Oti::new_no_code(SYMBOL, 64), &config);
        let (looks_at, renews_at) = (SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH);
        let directory = directory.to_owned();
        Self { sender, directory, sent: BTreeMap::new(), looks_at, renews_at }
    }

    /// The next packet, if one is due.
    fn read(&mut self, now: SystemTime) -> Option<Vec<u8>> {
        if now >= self.looks_at {
            self.looks_at = now + Self::LOOKS_EVERY;
            if self.update() || now >= self.renews_at {
                self.renews_at = now + Self::EXPIRES_AFTER / 2;
                self.sender.publish(now).unwrap();
            }
        }
        self.sender.read(now)
    }

    /// Adds what is new, and removes what is not there any more. Whether there was any.
    fn update(&mut self) -> bool {
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(&self.directory).unwrap().flatten() {
            let (name, metadata) = (entry.file_name().into_string().unwrap(), entry.metadata());
            // Programs write a file under another name first.
            let Some(state) = metadata.ok().filter(|_| !name.ends_with(".tmp")) else { continue };
            found.insert(name, (state.len(), state.modified().unwrap()));
        }
        let mut changed = false;
        let is_same = |name: &str, state: &(u64, SystemTime, u128)| {
            found.get(name) == Some(&(state.0, state.1))
        };
        let sender = &mut self.sender;
        self.sent.retain(|name, state| {
            let is_same = is_same(name, state);
            changed |= !is_same && sender.remove_object(state.2);
            is_same
        });
        for (name, (length, modified)) in found {
            if self.sent.contains_key(&name) {
                continue;
            }
            // It may be gone, or be replaced meanwhile: the next look finds that.
            let Ok(bytes) = std::fs::read(self.directory.join(&name)) else { continue };
            let transfer = TransferConfig {
                carousel_mode: Some(CarouselRepeatMode::DelayBetweenTransfers(Duration::ZERO)),
                ..Default::default()
            };
            let location = url::Url::parse(&format!("file:///{name}")).unwrap();
            let media_type = "application/octet-stream";
            let object =
                ObjectDesc::create_from_buffer(bytes, media_type, &location, true, transfer);
            let toi = self.sender.add_object(0, object.unwrap()).unwrap();
            self.sent.insert(name, (length, modified, toi));
            changed = true;
        }
        changed
    }
}

fn send(mut sender: Sender, to: SocketAddrV4, address: Ipv4Addr, bytes_per_second: f64) {
    send_with(to, address, bytes_per_second, |now| sender.read(now));
}

/// Sends packets as they are due.
fn send_with(
    to: SocketAddrV4,
    address: Ipv4Addr,
    bytes_per_second: f64,
    mut next: impl FnMut(SystemTime) -> Option<Vec<u8>>,
) {
    let socket = socket();
    socket.set_multicast_if_v4(&address).unwrap();
    socket.set_send_buffer_size(4 << 20).unwrap();
    let to = to.into();
    let mut due = Instant::now();
    loop {
        let now = Instant::now();
        if due > now {
            std::thread::sleep(due - now);
        }
        due = due.max(now.checked_sub(BURST).unwrap_or(now));
        let Some(packet) = next(SystemTime::now()) else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        let _ = socket.send_to(&packet, &to);
        due += Duration::from_secs_f64(packet.len() as f64 / bytes_per_second);
    }
}

fn receive(from: SocketAddrV4, address: Ipv4Addr, directory: &Path) {
    let mut socket = socket();
    socket.set_reuse_address(true).unwrap();
    socket.set_recv_buffer_size(RECEIVE_BUFFER).unwrap();
    socket.bind(&from.into()).unwrap();
    socket.join_multicast_v4(from.ip(), &address).unwrap();
    let writer = Rc::new(ObjectWriterFSBuilder::new(directory, false).unwrap());
    let config = receiver::Config {
        // The default limit of 10 MB discards a file whose first blocks lack symbols.
        object_max_cache_size: Some(usize::MAX),
        object_timeout: None,
        ..Default::default()
    };
    let mut receiver = MultiReceiver::new(writer, Some(config), false);
    let endpoint = endpoint(from);
    let mut begun = false;
    let mut packet = [0; 2048];
    loop {
        let length = socket.read(&mut packet).unwrap();
        // A packet that it rejects is lost.
        let _ = receiver.push(&endpoint, &packet[..length], SystemTime::now());
        // The objects in reception: the only one is removed when it is complete.
        let receiving = receiver.nb_objects() > 0;
        if begun && !receiving {
            return;
        }
        begun = receiving;
    }
}
