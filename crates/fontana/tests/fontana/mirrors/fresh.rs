//! A server of fresh symbols for tests, which sends whatever a test says.

use fontana::MirroredContent;
use fontana::wire::{FreshFrame, FreshIndex, FreshRequest, FreshStart, ShelfIndex, WebAddress};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the server sends as the symbol number `number` of a block, of `count` that are requested.
pub(crate) type Frames = fn(start: FreshStart, request: &FreshRequest, size: usize) -> Vec<u8>;

/// A running server. It ends when it is dropped.
pub(crate) struct FreshServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl FreshServer {
    /// Serves the manifest, an index, and frames.
    pub(crate) fn start(content: &MirroredContent, frames: Frames) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let (content, ended) = (content.clone(), Arc::clone(&stop));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let (content, stream) = (content.clone(), stream.unwrap());
                std::thread::spawn(move || serve(&content, frames, stream));
            }
        });
        Self { address, stop }
    }

    pub(crate) fn address(&self) -> WebAddress {
        format!("http://{}/", self.address).parse().unwrap()
    }
}

impl Drop for FreshServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(content: &MirroredContent, frames: Frames, mut stream: TcpStream) {
    let start = FreshStart::draw(7);
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while let Some(Ok(line)) = lines.next() {
        let path = line.split(' ').nth(1).unwrap_or("/")[1..].to_owned();
        // The fields up to the empty line.
        while lines.next().and_then(Result::ok).is_some_and(|field| !field.is_empty()) {}
        let body = if path == content.file_name() {
            content.file_bytes()
        } else if path == ShelfIndex::file_name(content.hash()) {
            FreshIndex { manifest: content.hash(), start }.emit()
        } else if let Some((_, query)) = path.split_once('?') {
            let size = content.manifest().objects()[0].oti.symbol_size;
            frames(start, &FreshRequest::parse(query).unwrap(), size.into())
        } else {
            Vec::new()
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)).is_err() {
            return;
        }
    }
}

/// Wrong symbols, with the ids that were requested.
pub(crate) fn wrong(start: FreshStart, request: &FreshRequest, size: usize) -> Vec<u8> {
    frames(request, size, |number| start.esi(number))
}

/// The first symbol of each block, again and again.
pub(crate) fn repeated(start: FreshStart, request: &FreshRequest, size: usize) -> Vec<u8> {
    frames(request, size, |_| start.first_esi())
}

/// Source symbols, which were not requested.
pub(crate) fn others(_: FreshStart, request: &FreshRequest, size: usize) -> Vec<u8> {
    frames(request, size, fontana_fec::Esi)
}

/// More frames than were requested.
pub(crate) fn too_many(start: FreshStart, request: &FreshRequest, size: usize) -> Vec<u8> {
    [wrong(start, request, size), wrong(start, request, size)].concat()
}

fn frames(request: &FreshRequest, size: usize, esi: impl Fn(u32) -> fontana_fec::Esi) -> Vec<u8> {
    let mut out = Vec::new();
    for share in &request.blocks {
        for number in share.start..share.start + share.count {
            out.extend_from_slice(&FreshFrame::id(share.sbn, esi(number)));
            out.resize(out.len() + size, 0x5a);
        }
    }
    out
}

/// The ids of the frames that a server sends of symbols of this size, each once.
pub(crate) fn ids(server: SocketAddr, path: &str, size: usize) -> BTreeSet<u32> {
    let mut stream = TcpStream::connect(server).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let frames = answer[head..].chunks_exact(FreshFrame::ID_SIZE + size);
    frames.map(|frame| u32::from_be_bytes(frame[..4].try_into().unwrap())).collect()
}
