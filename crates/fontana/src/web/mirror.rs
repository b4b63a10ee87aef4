//! The thread of a mirror: it carries out orders of the deciding thread, one after the other.

use super::address::Site;
use super::client::{Access, Answer, Client, FileRange};
use super::failure::MirrorFailure;
use super::limit::RateLimit;
pub(crate) use super::patience::Need;
use crossbeam_channel::{Receiver, Sender};
use fontana_net::PanicError;
use std::io::Read;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes that are handed over together.
const CHUNK: usize = 64 << 10;
/// Time after which fewer are handed over: the rate of a mirror is measured by what arrives.
const HAND_OVER: Duration = Duration::from_millis(60);
/// Bytes of an answer that is not needed any more that are read nevertheless: a new connection
/// costs more.
const WORTH_READING: u64 = 64 << 10;
/// Files in a row that a server does not have, after which an order is given up: it may have none.
pub(crate) const MAX_MISSING: u32 = 8;

/// What a mirror is to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// Read a file as a whole.
    File { path: Arc<str>, limit: u64 },
    /// Read a range of an object.
    Fetch(Fetch),
}

/// A range of an object, of whole symbols but for the object's last one.
#[derive(Clone, Debug)]
pub(crate) struct Fetch {
    /// The bytes of the object.
    pub(crate) bytes: Range<u64>,
    pub(crate) symbol_size: u16,
    /// The length of the object.
    pub(crate) object_length: u64,
    /// The ranges of files that have them, in order.
    pub(crate) pieces: Vec<FileRange>,
    /// The offset in the object of the first byte of the file, if the object is that file.
    pub(crate) file_start: Option<u64>,
}

/// What a mirror has done.
#[derive(Debug)]
pub(crate) struct Report {
    /// The number of the mirror.
    pub(crate) mirror: usize,
    pub(crate) what: Done,
}

#[derive(Debug)]
pub(crate) enum Done {
    /// A file, and the address of the server.
    File(Vec<u8>, Option<SocketAddr>),
    /// Whole symbols of the object, from this byte of it on.
    Bytes { at: u64, bytes: Vec<u8> },
    /// A part of a symbol, from this byte of the object on: the server lacks the file with the
    /// rest.
    Part { at: u64, bytes: Vec<u8> },
    /// The server does not have these bytes of the object. The order goes on behind them.
    Missing { bytes: Range<u64>, failure: MirrorFailure },
    /// The server sends the whole file; the order now ends with it.
    Sequential,
    /// The order is done, or cut.
    Ended,
    /// The thread has panicked.
    Panicked(PanicError),
    /// The order has failed. Bytes before that are right, as far as can be known.
    Failed(MirrorFailure),
}

/// The thread's side of a mirror.
pub(crate) struct Mirror {
    pub(crate) number: usize,
    pub(crate) site: Site,
    pub(crate) need: Arc<Need>,
    pub(crate) reports: Sender<Report>,
    /// The limit of all mirrors, if there is one.
    pub(crate) limit: Option<Arc<RateLimit>>,
}

/// The driver has ended.
struct Gone;

impl Mirror {
    /// Carries out orders until the driver drops its end of the queue.
    pub(crate) fn run(self, orders: &Receiver<Order>, access: &Access) {
        let mut client = Client::new(self.site.clone(), Arc::clone(&self.need), access);
        for order in orders {
            let result = match order {
                Order::File { path, limit } => client.read(&path, limit).map(|bytes| {
                    let address = client.address();
                    self.report(Done::File(bytes, address))
                }),
                Order::Fetch(fetch) => self.fetch(&mut client, &fetch),
            };
            let told = match result {
                Ok(told) => told,
                Err(MirrorFailure::Cut) => self.report(Done::Ended),
                Err(failure) => {
                    client.forget_redirects();
                    self.report(Done::Failed(failure))
                }
            };
            if told.is_err() {
                return;
            }
        }
    }

    fn report(&self, what: Done) -> Result<(), Gone> {
        self.reports.send(Report { mirror: self.number, what }).map_err(|_| Gone)
    }

    /// Carries out an order. A file that the server does not have is left out: others may have it.
    fn fetch(&self, client: &mut Client, fetch: &Fetch) -> Result<Result<(), Gone>, MirrorFailure> {
        let mut out = Symbols::new(self, fetch);
        let (mut end, mut missing) = (fetch.bytes.start, 0);
        for piece in &fetch.pieces {
            end += piece.range.end - piece.range.start;
            match self.fetch_piece(client, fetch, piece, &mut out) {
                Ok(Ok(Piece::Read)) => missing = 0,
                Ok(Ok(Piece::Cut)) => return Ok(self.report(Done::Ended)),
                Ok(Err(Gone)) => return Ok(Err(Gone)),
                Err(failure) => {
                    missing += 1;
                    let is_alone = fetch.pieces.len() == 1 || missing == MAX_MISSING;
                    if failure.file().is_none() || is_alone {
                        return Err(failure);
                    }
                    client.forget_redirects();
                    if out.skip(end, failure).is_err() {
                        return Ok(Err(Gone));
                    }
                }
            }
        }
        Ok(out.end().and_then(|()| self.report(Done::Ended)))
    }

    fn fetch_piece(
        &self,
        client: &mut Client,
        fetch: &Fetch,
        piece: &FileRange,
        out: &mut Symbols<'_>,
    ) -> Result<Result<Piece, Gone>, MirrorFailure> {
        let mut left = piece.clone();
        while !left.range.is_empty() {
            if self.need.left() == 0 {
                return Ok(Ok(Piece::Cut));
            }
            let answer = client.get(&left)?;
            let read = if !answer.is_whole {
                out.read(client, answer, &left)
            } else if let Some(start) = fetch.file_start {
                if self.report(Done::Sequential).is_err() {
                    return Ok(Err(Gone));
                }
                self.need.set(fetch.object_length - fetch.bytes.start);
                out.begin_at(start);
                let whole = FileRange { range: 0..left.length, ..left.clone() };
                let read = out.read(client, answer, &whole);
                left.range.start = left.length;
                read
            } else {
                out.read(client, answer, &left)
            };
            match read? {
                Err(Gone) => return Ok(Err(Gone)),
                Ok(0) => return Ok(Ok(Piece::Cut)),
                Ok(count) => left.range.start += count,
            }
        }
        Ok(Ok(Piece::Read))
    }
}

/// What became of a piece of an order.
enum Piece {
    /// All of it was read.
    Read,
    /// It is not needed any more.
    Cut,
}

/// Cuts the bytes of an order into symbols.
struct Symbols<'a> {
    mirror: &'a Mirror,
    fetch: &'a Fetch,
    buffer: Vec<u8>,
    /// The byte of the object at the beginning of the buffer: the first one of a symbol.
    at: u64,
    handed_over: Instant,
}

impl<'a> Symbols<'a> {
    fn new(mirror: &'a Mirror, fetch: &'a Fetch) -> Self {
        let (buffer, at) = (Vec::with_capacity(CHUNK), fetch.bytes.start);
        Self { mirror, fetch, buffer, at, handed_over: Instant::now() }
    }

    /// The server does not have the next bytes of the object, up to `end`.
    fn skip(&mut self, end: u64, failure: MirrorFailure) -> Result<(), Gone> {
        self.end()?;
        if !self.buffer.is_empty() {
            self.hand_over_part(self.buffer.len())?;
        }
        let bytes = self.at..end.max(self.at);
        self.at = bytes.end;
        self.mirror.report(Done::Missing { bytes, failure })
    }

    /// The next byte is another one of the object.
    fn begin_at(&mut self, at: u64) {
        self.buffer.clear();
        self.at = at;
    }

    /// Reads the bytes of `wanted` from an answer, or as many as are needed. Returns how many that
    /// were; 0 if no more are needed.
    fn read(
        &mut self,
        client: &Client,
        answer: Answer,
        wanted: &FileRange,
    ) -> Result<Result<u64, Gone>, MirrorFailure> {
        let Answer { range, mut body, has_length, kind, .. } = answer;
        let skipped = wanted.range.start.saturating_sub(range.start);
        discard(&mut body, skipped).map_err(|error| client.failure_of_read(&error))?;
        let mut left = range.end.min(wanted.range.end) - wanted.range.start;
        let mut count = 0;
        while left > 0 {
            if self.mirror.need.left() == 0 {
                if range.end - wanted.range.start - count <= WORTH_READING {
                    let _ = discard(&mut body, WORTH_READING);
                }
                return Ok(self.end().map(|()| 0));
            }
            let start = self.buffer.len();
            let most = (CHUNK - start.min(CHUNK - 1)).min(usize::try_from(left).unwrap_or(CHUNK));
            self.buffer.resize(start + most, 0);
            let into = self.buffer.get_mut(start..).unwrap_or_default();
            let read = body.read(into);
            self.buffer.truncate(start + *read.as_ref().unwrap_or(&0));
            let read = read.map_err(|error| client.failure_of_read(&error))? as u64;
            if read == 0 && !has_length {
                // A page of a portal, for example. What little has come of it is no symbol.
                let page = usize::try_from(count).unwrap_or(usize::MAX);
                self.buffer.truncate(self.buffer.len().saturating_sub(page));
                let (came, all) = (skipped + count, skipped + count + left);
                let what = format!("{came} bytes{kind} instead of {all}");
                return Err(MirrorFailure::Range { path: wanted.path.to_string(), what });
            }
            if read == 0 {
                let what = "the connection ended before the answer did";
                return Err(MirrorFailure::Connection(what.to_owned()));
            }
            (left, count) = (left - read, count + read);
            if let Some(limit) = &self.mirror.limit {
                limit.wait(read, &self.mirror.need);
            }
            // Where the answer ends shows whether it is the file, if it does not say so.
            let is_due = has_length && self.handed_over.elapsed() >= HAND_OVER;
            if (self.buffer.len() >= CHUNK || is_due) && self.flush().is_err() {
                return Ok(Err(Gone));
            }
            let arrived = self.at + self.buffer.len() as u64;
            self.mirror.need.set_arrived(arrived.saturating_sub(self.fetch.bytes.start));
        }
        // Reads the end of the answer, so that the connection can be used again.
        if range.end == wanted.range.start + count {
            let _ = body.read(&mut [0]);
        }
        Ok(Ok(count))
    }

    /// Hands over the whole symbols in the buffer.
    fn flush(&mut self) -> Result<(), Gone> {
        self.handed_over = Instant::now();
        let size = usize::from(self.fetch.symbol_size).max(1);
        let inside = (self.at % size as u64) as usize;
        if inside > 0 {
            // The server does not have what the symbol begins with.
            if self.buffer.len() < size - inside {
                return Ok(());
            }
            self.hand_over_part(size - inside)?;
        }
        let whole = self.buffer.len() / size * size;
        if whole == 0 {
            return Ok(());
        }
        let rest = self.buffer.split_off(whole);
        let bytes = std::mem::replace(&mut self.buffer, rest);
        self.buffer.reserve(CHUNK.saturating_sub(self.buffer.len()));
        let at = self.at;
        self.at += whole as u64;
        self.mirror.report(Done::Bytes { at, bytes })
    }

    /// Hands over bytes of the buffer that are not a whole symbol.
    fn hand_over_part(&mut self, length: usize) -> Result<(), Gone> {
        let rest = self.buffer.split_off(length);
        let (at, bytes) = (self.at, std::mem::replace(&mut self.buffer, rest));
        self.at += length as u64;
        self.mirror.report(Done::Part { at, bytes })
    }

    /// Hands over what is left: whole symbols, and the object's last one if it is complete.
    fn end(&mut self) -> Result<(), Gone> {
        self.flush()?;
        let end = self.at + self.buffer.len() as u64;
        if self.buffer.is_empty() {
            return Ok(());
        }
        if !self.at.is_multiple_of(u64::from(self.fetch.symbol_size).max(1)) {
            return self.hand_over_part(self.buffer.len());
        }
        if end != self.fetch.object_length {
            return Ok(());
        }
        let (at, bytes) = (self.at, std::mem::take(&mut self.buffer));
        self.at = end;
        self.mirror.report(Done::Bytes { at, bytes })
    }
}

fn discard(body: &mut impl Read, count: u64) -> std::io::Result<()> {
    std::io::copy(&mut body.take(count), &mut std::io::sink()).map(drop)
}
