//! A sender and receivers without a protocol, for the ceiling and the floor of `fontana-bench net`.
//!
//! ```text
//! raw send GROUP:PORT ADDRESS
//! raw receive GROUP:PORT ADDRESS BYTES frames|offload [FILE]
//! ```
//!
//! ADDRESS is that of the interface. The sender sends one GSO batch again and again, as fast as the
//! system takes it, until it is killed. A receiver ends when it has received BYTES of payload, all
//! of which count: it is the receiver of an ideal fountain whose decoding costs nothing. With FILE
//! it also writes the payload in pieces of 64 KiB, hashes them (BLAKE3), syncs, and renames: what
//! every receiver of files has to do. Without FILE it only reads.

#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "an example: system calls of Linux, and an error ends it"
)]

use socket2::{Domain, Protocol, Socket, Type};
use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Header and symbol of Fontana on Ethernet.
const HEADER: usize = 20;
const SYMBOL: usize = 1344;
const DATAGRAM: usize = HEADER + SYMBOL;
/// Datagrams of the longest GSO batch that fits one IP packet.
const BATCH: usize = 48;
/// Requested size of the receive buffer: that of Fontana's receivers.
const RECEIVE_BUFFER: libc::c_int = 8 << 20;
const PIECE: usize = 64 << 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["send", to, address] => send(to.parse().unwrap(), address.parse().unwrap()),
        ["receive", from, address, bytes, mode, ref file @ ..] => {
            let buffers = match mode {
                "offload" => Buffers::new(8, PIECE),
                _ => Buffers::new(64, 2048),
            };
            let file = file.first().map(PathBuf::from);
            let from = from.parse().unwrap();
            receive(from, address.parse().unwrap(), bytes.parse().unwrap(), buffers, file);
        }
        _ => {
            eprintln!("usage: raw send GROUP:PORT ADDRESS");
            eprintln!("       raw receive GROUP:PORT ADDRESS BYTES frames|offload [FILE]");
            std::process::exit(2);
        }
    }
}

fn socket() -> Socket {
    Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap()
}

fn set(socket: &Socket, level: libc::c_int, name: libc::c_int, value: libc::c_int) {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the pointer is to a value of that size.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), size)
    };
    assert_eq!(result, 0, "option {name}: {}", io::Error::last_os_error());
}

fn send(to: SocketAddrV4, address: Ipv4Addr) {
    let socket = socket();
    socket.set_multicast_if_v4(&address).unwrap();
    socket.set_send_buffer_size(4 << 20).unwrap();
    set(&socket, libc::SOL_UDP, libc::UDP_SEGMENT, DATAGRAM as libc::c_int);
    let batch = vec![7; BATCH * DATAGRAM];
    let to = to.into();
    loop {
        // A full queue loses a batch, which the next one replaces.
        let _ = socket.send_to(&batch, &to);
    }
}

/// What `recvmmsg` fills: messages of one buffer each.
struct Buffers {
    bytes: Vec<u8>,
    /// Bytes of a buffer.
    size: usize,
    _parts: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

impl Buffers {
    fn new(count: usize, size: usize) -> Self {
        let mut bytes = vec![0; count * size];
        let mut parts: Vec<_> = bytes
            .chunks_mut(size)
            .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: size })
            .collect();
        let message = |part| {
            // SAFETY: a header of zeros is valid: no name, no control data, no buffers.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message
        };
        let messages = parts.iter_mut().map(|part| message(part)).collect();
        Self { bytes, size, _parts: parts, messages }
    }

    /// Waits for messages. The buffers that are filled then.
    fn receive(&mut self, socket: &Socket) -> impl Iterator<Item = &[u8]> {
        // SAFETY: every header points to a buffer of its own in `bytes`, which is not moved or
        // resized as long as `self` exists.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                self.messages.len() as libc::c_uint,
                libc::MSG_WAITFORONE,
                std::ptr::null_mut(),
            )
        };
        let received = usize::try_from(received)
            .unwrap_or_else(|_| unreachable!("recvmmsg: {}", io::Error::last_os_error()));
        let filled = self.bytes.chunks(self.size).zip(&self.messages).take(received);
        filled.map(|(buffer, message)| &buffer[..message.msg_len as usize])
    }
}

fn receive(
    from: SocketAddrV4,
    address: Ipv4Addr,
    bytes: usize,
    mut buffers: Buffers,
    file: Option<PathBuf>,
) {
    let socket = socket();
    socket.set_reuse_address(true).unwrap();
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER);
    if buffers.size > 2 * DATAGRAM {
        set(&socket, libc::SOL_UDP, libc::UDP_GRO, 1);
    }
    socket.bind(&from.into()).unwrap();
    socket.join_multicast_v4(from.ip(), &address).unwrap();
    let mut place = file.map(|path| Place::new(&path));
    let mut received = 0;
    while received < bytes {
        for message in buffers.receive(&socket) {
            received += message.len() - HEADER * message.len().div_ceil(DATAGRAM);
            if let Some(place) = &mut place {
                let symbols = message.chunks(DATAGRAM).filter_map(|bytes| bytes.get(HEADER..));
                symbols.for_each(|symbol| place.put(symbol));
            }
        }
    }
    drop(socket);
    if let Some(place) = place {
        place.finish();
    }
}

/// A file that is written in pieces, and hashed.
struct Place {
    file: File,
    path: PathBuf,
    piece: Vec<u8>,
    hasher: blake3::Hasher,
}

impl Place {
    fn new(path: &Path) -> Self {
        let path = path.to_owned();
        let file = File::create(path.with_extension("part")).unwrap();
        Self { file, path, piece: Vec::with_capacity(PIECE), hasher: blake3::Hasher::new() }
    }

    fn put(&mut self, symbol: &[u8]) {
        let (now, later) = symbol.split_at(symbol.len().min(PIECE - self.piece.len()));
        self.piece.extend_from_slice(now);
        if self.piece.len() == PIECE {
            self.flush();
            self.piece.extend_from_slice(later);
        }
    }

    fn flush(&mut self) {
        self.file.write_all(&self.piece).unwrap();
        self.hasher.update(&self.piece);
        self.piece.clear();
    }

    fn finish(mut self) {
        self.flush();
        std::hint::black_box(self.hasher.finalize());
        self.file.sync_all().unwrap();
        std::fs::rename(self.path.with_extension("part"), &self.path).unwrap();
    }
}
