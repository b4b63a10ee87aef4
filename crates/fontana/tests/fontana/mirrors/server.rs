//! A web server for tests: HTTP/1.1, one thread for each connection, and every misbehavior on
//! request.

use fontana::wire::WebAddress;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How the server answers. The file with the manifest is always answered right, unless the status
/// of all answers is another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behavior {
    /// Knows ranges.
    pub(crate) ranges: bool,
    /// Bytes per second of each connection.
    pub(crate) rate: Option<u64>,
    /// Added to the length of the file in `Content-Range`.
    pub(crate) length_more: u64,
    /// Added to the start of the range.
    pub(crate) start_more: u64,
    /// Redirects every request there.
    pub(crate) redirects: Option<&'static str>,
    /// Redirects the first request for a range to the server with this address.
    pub(crate) redirects_first: Option<&'static str>,
    /// Answers all requests but the first with 503.
    pub(crate) fails_later: bool,
    /// Redirects `/x` to `/moved/x`.
    pub(crate) redirects_once: bool,
    pub(crate) encoding: Option<&'static str>,
    pub(crate) status: Option<u16>,
    /// Alters a byte in each so many of a file.
    pub(crate) flips: Option<usize>,
    /// Never answers.
    pub(crate) silent: bool,
    pub(crate) endless_head: bool,
    /// Has no length, and no end.
    pub(crate) endless_body: bool,
    /// Ends each answer after a half.
    pub(crate) cuts: bool,
    /// Has another ETag for each answer.
    pub(crate) etag_changes: bool,
    /// Answers each range with one from the beginning of the file to its end.
    pub(crate) from_zero: bool,
    /// Does not have the files with these names.
    pub(crate) lacks: Option<fn(&str) -> bool>,
    /// Answers so many requests with 503 before it answers.
    pub(crate) fails_first: u64,
    /// Answers with a page of 26 bytes that has no length.
    pub(crate) page: bool,
}

impl Default for Behavior {
    fn default() -> Self {
        Self {
            ranges: true,
            rate: None,
            length_more: 0,
            start_more: 0,
            redirects: None,
            redirects_first: None,
            fails_later: false,
            redirects_once: false,
            encoding: None,
            status: None,
            flips: None,
            silent: false,
            endless_head: false,
            endless_body: false,
            cuts: false,
            etag_changes: false,
            from_zero: false,
            lacks: None,
            fails_first: 0,
            page: false,
        }
    }
}

/// A running server. It ends when it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

struct Shared {
    root: PathBuf,
    behavior: Behavior,
    requests: AtomicU64,
    ranges: AtomicU64,
    stop: Arc<AtomicBool>,
}

impl Server {
    pub(crate) fn start(root: &Path, behavior: Behavior) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let shared = Arc::new(Shared {
            root: root.to_owned(),
            behavior,
            requests: AtomicU64::new(0),
            ranges: AtomicU64::new(0),
            stop: Arc::clone(&stop),
        });
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.stop.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(&shared, stream));
            }
        });
        Self { address, stop }
    }

    pub(crate) fn address(&self) -> WebAddress {
        format!("http://{}/", self.address).parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers the requests of a connection.
fn serve(shared: &Shared, stream: TcpStream) -> Option<()> {
    let mut out = stream.try_clone().ok()?;
    let mut lines = BufReader::new(stream);
    loop {
        let (mut path, mut range, mut if_range) = (String::new(), None, None);
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(rest) = line.strip_prefix("GET ") {
                path = rest.split(' ').next()?.to_owned();
            } else if let Some(bytes) = lower.strip_prefix("range: bytes=") {
                let (first, last) = bytes.split_once('-')?;
                range = Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?));
            } else if lower.starts_with("if-range: ") {
                if_range = Some(line["if-range: ".len()..].to_owned());
            }
        }
        answer(shared, &mut out, &path, range, if_range.as_deref())?;
    }
}

fn answer(
    shared: &Shared,
    out: &mut TcpStream,
    path: &str,
    range: Option<(u64, u64)>,
    if_range: Option<&str>,
) -> Option<()> {
    let is_manifest = path.ends_with(".fontana");
    let number = shared.requests.fetch_add(1, Ordering::Relaxed);
    if number < shared.behavior.fails_first {
        let head = "HTTP/1.1 503 No\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";
        return out.write_all(head.as_bytes()).ok();
    }
    let mut own = shared.behavior;
    if is_manifest && own.status.is_none() {
        own = Behavior { redirects_once: own.redirects_once, ..Behavior::default() };
    }
    if own.silent {
        while !shared.stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        return None;
    }
    if own.endless_head {
        out.write_all(b"HTTP/1.1 206 Partial Content\r\n").ok()?;
        while !shared.stop.load(Ordering::Relaxed) {
            out.write_all(b"X-More: and more\r\n").ok()?;
        }
        return None;
    }
    let ranges = range.map_or(u64::MAX, |_| shared.ranges.fetch_add(1, Ordering::Relaxed));
    if let Some(to) = own.redirects_first.filter(|_| ranges == 0) {
        let path = path.trim_start_matches('/');
        let head =
            format!("HTTP/1.1 302 Found\r\nLocation: {to}{path}\r\nContent-Length: 0\r\n\r\n");
        return out.write_all(head.as_bytes()).ok();
    }
    if let Some(status) = own.status.or((own.fails_later && number > 0).then_some(503)) {
        return out
            .write_all(format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n").as_bytes())
            .ok();
    }
    let moved = path.strip_prefix("/moved");
    let to = own.redirects.map(str::to_owned);
    let to =
        to.or_else(|| (own.redirects_once && moved.is_none()).then(|| format!("/moved{path}")));
    if let Some(to) = to {
        let head = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
        return out.write_all(head.as_bytes()).ok();
    }
    let name = decode(moved.unwrap_or(path).strip_prefix('/')?);
    if own.page {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=x\r\n";
        let body =
            "Transfer-Encoding: chunked\r\n\r\n1a\r\n<html>please log in</html>\r\n0\r\n\r\n";
        return out.write_all(format!("{head}{body}").as_bytes()).ok();
    }
    let is_lacking = own.lacks.is_some_and(|lacks| lacks(&name.to_string_lossy()));
    let mut file = Vec::new();
    match std::fs::File::open(shared.root.join(name)) {
        Ok(mut opened) if !is_lacking => opened.read_to_end(&mut file).ok()?,
        _ => {
            return out.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").ok();
        }
    };
    let etag = format!("\"{}\"", if own.etag_changes { number / 2 } else { 7 });
    let range = range.filter(|_| own.ranges && if_range.is_none_or(|known| known == etag));
    let (status, first, end) = match range {
        Some(_) if own.from_zero => ("206 Partial Content", 0, file.len() as u64),
        Some((first, last)) => ("206 Partial Content", first, (last + 1).min(file.len() as u64)),
        None => ("200 OK", 0, file.len() as u64),
    };
    let mut head = format!("HTTP/1.1 {status}\r\nETag: {etag}\r\n");
    if range.is_some() {
        let (from, total) = (first + own.start_more, file.len() as u64 + own.length_more);
        head += &format!("Content-Range: bytes {from}-{}/{total}\r\n", end - 1 + own.start_more);
    }
    if let Some(encoding) = own.encoding {
        head += &format!("Content-Encoding: {encoding}\r\n");
    }
    head += &match own.endless_body {
        true => "Connection: close\r\n\r\n".to_owned(),
        false => format!("Content-Length: {}\r\n\r\n", end - first),
    };
    out.write_all(head.as_bytes()).ok()?;
    let mut body = file[first as usize..end as usize].to_vec();
    if let Some(every) = own.flips {
        let first_flip = (every / 2 + every - first as usize % every) % every;
        body.iter_mut().skip(first_flip).step_by(every).for_each(|byte| *byte ^= 1);
    }
    if own.cuts {
        send(shared, out, &body[..body.len() / 2], own.rate)?;
        return None;
    }
    send(shared, out, &body, own.rate)?;
    while own.endless_body && !shared.stop.load(Ordering::Relaxed) {
        out.write_all(&[0; 4096]).ok()?;
    }
    (!own.endless_body).then_some(())
}

fn send(shared: &Shared, out: &mut TcpStream, body: &[u8], rate: Option<u64>) -> Option<()> {
    let Some(rate) = rate else { return out.write_all(body).ok() };
    // Twenty pieces a second.
    for piece in body.chunks((rate as usize / 20).max(1)) {
        if shared.stop.load(Ordering::Relaxed) {
            return None;
        }
        out.write_all(piece).ok()?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(())
}

/// Undoes percent-encoding.
fn decode(path: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let (mut bytes, mut rest) = (Vec::new(), path.bytes());
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next().unwrap(), rest.next().unwrap()];
            let digits = std::str::from_utf8(&digits).unwrap();
            bytes.push(u8::from_str_radix(digits, 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    std::ffi::OsString::from_vec(bytes).into()
}
