//! Which request gets which answer (RFC 9110). A request names files of the manifest, the manifest,
//! the index or symbols; there is nothing else.

use super::body::{PIECE, Piece, PieceBody};
use super::counters::Counters;
use super::draw::{Draw, NoDraw};
use super::files::{RangeWanted, parse_range};
use super::meter::Meter;
use super::sites::{Site, Sites};
use super::symbols::FreshSymbols;
use crate::error::Error;
use crate::mirror_head::MirrorHead;
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use fontana_net::thread::catch;
use fontana_wire::{FileEntry, FreshIndex, FreshRequest, HeldIndex, ShelfIndex};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// Time after which a client is to ask again for what is not there yet, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// Of answers that change.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// The answers of a server.
pub(super) fn router(sites: Arc<Sites>) -> Router {
    Router::new().fallback(answer).with_state(sites)
}

async fn answer(
    State(sites): State<Arc<Sites>>,
    Extension(meter): Extension<Arc<Meter>>,
    request: Request,
) -> Response {
    Counters::add(&sites.counters.requests, 1);
    let making = meter.making();
    let Some(site) = sites.wait().await else { return not_yet() };
    drop(making);
    let is_head = request.method() == Method::HEAD;
    if !is_head && request.method() != Method::GET {
        let mut response = status(StatusCode::METHOD_NOT_ALLOWED);
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let uri = request.uri();
    let path = uri.path().strip_prefix('/').unwrap_or_default();
    if let Some(symbols) = &site.symbols {
        if path == ShelfIndex::file_name(site.hash) {
            let index = FreshIndex { manifest: site.hash, start: symbols.start() };
            return whole(index.emit().into(), "application/octet-stream");
        }
        let of_manifest = path.strip_prefix("f/").and_then(|rest| rest.split_once('/'));
        if let Some((manifest, toi)) = of_manifest
            && manifest == site.hash.to_string()
        {
            let (query, meter) = (uri.query().unwrap_or_default(), Arc::clone(&meter));
            return fresh(&site, symbols, toi, query, meter, is_head);
        }
    }
    if path == ShelfIndex::file_name(site.hash)
        && let Some(index) = site.files.index()
    {
        let known = uri.query().and_then(HeldIndex::parse_query);
        if known == Some(index.blocks()) {
            let _making = meter.making();
            sites.wait_for_more().await;
        }
        // The content may have become complete: then there is another index.
        let index = site.files.index().unwrap_or(index);
        let mut response = whole(index.emit().into(), "application/octet-stream");
        response.headers_mut().insert(header::CACHE_CONTROL, NO_STORE);
        return response;
    }
    if path == site.manifest.0 {
        return whole(site.manifest.1.clone(), "application/octet-stream");
    }
    match (site.files.find(path), &site.head) {
        (Some(file), _) => file_answer(&site, file, request.headers(), meter, is_head),
        (None, Some(head)) if path == MirrorHead::FILE_NAME => {
            whole(head.clone(), "application/octet-stream")
        }
        (None, _) => status(StatusCode::NOT_FOUND),
    }
}

/// An answer with a status, and a line for people.
fn status(code: StatusCode) -> Response {
    let reason = code.canonical_reason().unwrap_or_default();
    let mut response = whole(format!("{} {reason}\n", code.as_u16()).into(), "text/plain");
    *response.status_mut() = code;
    response
}

/// The answer while the content, or a part of it, is still being received.
fn not_yet() -> Response {
    let mut response = status(StatusCode::SERVICE_UNAVAILABLE);
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    response
}

fn whole(bytes: Bytes, kind: &'static str) -> Response {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An answer with a body that is made while it is sent.
fn piecewise(site: &Site, length: Option<u64>) -> (Sender<Piece>, Response) {
    let (pieces, body) = PieceBody::new(length, site.waiting_bytes);
    let mut response = Response::new(Body::new(body));
    let kind = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    (pieces, response)
}

/// Fresh symbols of an object.
fn fresh(
    site: &Arc<Site>,
    symbols: &Arc<FreshSymbols>,
    toi: &str,
    query: &str,
    meter: Arc<Meter>,
    is_head: bool,
) -> Response {
    let Ok(toi) = toi.parse::<u32>() else { return status(StatusCode::NOT_FOUND) };
    let Some(frame_size) = symbols.frame_size(toi) else { return status(StatusCode::NOT_FOUND) };
    let request = match FreshRequest::parse(query) {
        Ok(request) => request,
        Err(error) => {
            let mut response = whole(format!("{error}\n").into(), "text/plain");
            *response.status_mut() = StatusCode::BAD_REQUEST;
            return response;
        }
    };
    let mut draw = match Draw::new(symbols, toi, &request) {
        Ok(draw) => draw,
        Err(NoDraw::NotThere) => return status(StatusCode::NOT_FOUND),
        Err(NoDraw::NotReached) => return status(StatusCode::RANGE_NOT_SATISFIABLE),
    };
    let length = request.symbols().map(|count| count.saturating_mul(frame_size as u64));
    let (pieces, mut response) = piecewise(site, length);
    // Another client's symbols, or later ones, are as good: none of them is worth keeping.
    response.headers_mut().insert(header::CACHE_CONTROL, NO_STORE);
    if is_head {
        return response;
    }
    let counters = Arc::clone(&site.counters);
    tokio::spawn(async move {
        loop {
            let making = meter.making();
            let piece = tokio::select! {
                piece = draw.next() => piece,
                // The client has gone.
                () = pieces.closed() => return,
            };
            let Some(piece) = piece else { return };
            drop(making);
            let count = piece.as_ref().map_or(0, |frames| frames.len() / frame_size);
            let is_over = piece.is_err();
            if pieces.send(piece).await.is_err() || is_over {
                return;
            }
            Counters::add(&counters.symbols, count as u64);
        }
    });
    response
}

/// A file, or a range of it.
fn file_answer(
    site: &Arc<Site>,
    file: Arc<FileEntry>,
    headers: &HeaderMap,
    meter: Arc<Meter>,
    is_head: bool,
) -> Response {
    let (length, etag) = (file.length(), site.files.etag(&file));
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    // A range of another content is of no use (RFC 9110, section 13.1.5).
    let is_same = text(header::IF_RANGE).is_none_or(|of| of == etag);
    let wanted = text(header::RANGE).filter(|_| is_same);
    let wanted = wanted.map_or(RangeWanted::All, |field| parse_range(field, length));
    let range = match &wanted {
        RangeWanted::All => 0..length,
        RangeWanted::Part(range) => range.clone(),
        RangeWanted::Unsatisfiable => {
            let mut response = status(StatusCode::RANGE_NOT_SATISFIABLE);
            insert(&mut response, header::CONTENT_RANGE, &format!("bytes */{length}"));
            return response;
        }
    };
    if !site.files.has(&file, &range) {
        return not_yet();
    }
    let (pieces, mut response) = piecewise(site, Some(range.end - range.start));
    insert(&mut response, header::ETAG, &etag);
    insert(&mut response, header::ACCEPT_RANGES, "bytes");
    if matches!(wanted, RangeWanted::Part(_)) {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let of = format!("bytes {}-{}/{length}", range.start, range.end - 1);
        insert(&mut response, header::CONTENT_RANGE, &of);
    }
    if !is_head {
        tokio::spawn(send_file(Arc::clone(site), file, range, pieces, meter));
    }
    response
}

fn insert(response: &mut Response, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Reads a range of a file, piece by piece, as the client takes it.
async fn send_file(
    site: Arc<Site>,
    file: Arc<FileEntry>,
    range: Range<u64>,
    pieces: Sender<Piece>,
    meter: Arc<Meter>,
) {
    let mut at = range.start;
    while at < range.end {
        let making = meter.making();
        let end = range.end.min(at + PIECE as u64);
        let (own, part) = (Arc::clone(&site), Arc::clone(&file));
        let read = move || {
            catch(|| own.files.read(&part, at..end)).unwrap_or_else(|panic| Err(panic.into()))
        };
        let read = tokio::select! {
            read = tokio::task::spawn_blocking(read) => read,
            () = pieces.closed() => return,
        };
        let read = read
            .unwrap_or_else(|error| Err(Error::system("wait for a file")(io::Error::other(error))));
        drop(making);
        let piece = read.map(Bytes::from).map_err(Arc::new);
        if let Err(error) = &piece {
            site.counters.fail(Arc::clone(error));
        }
        let is_over = piece.is_err();
        if pieces.send(piece).await.is_err() || is_over {
            return;
        }
        at = end;
    }
}
