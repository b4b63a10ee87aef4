//! HTTP requests to a mirror, and the checks of its answers (RFC 9110, sections 13 to 15).

use super::address::Site;
use super::credentials::MirrorHeader;
use super::failure::MirrorFailure;
use super::gate::{Gate, Refused, Standings};
use super::patience::{Need, Patience, SILENCE};
use super::proxy::Direct;
use super::retry_after::retry_after;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use ureq::config::Config;
use ureq::http::{HeaderMap, Response, Uri, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::transport::{
    ConnectProxyConnector, Connector, RustlsConnector, TcpConnector,
};
use ureq::{Agent, Body, BodyReader, Error, Proxy};
use url::Url;

/// Redirects of one request.
const MAX_REDIRECTS: usize = 5;
/// Bytes of the head of an answer.
const MAX_HEAD: usize = 16 << 10;
/// Bytes of the connection's buffers: a few packets.
const BUFFER: usize = 64 << 10;
/// Bytes before a range that are read and dropped. If more precede it, the answer is taken for one
/// of a server without ranges.
const MAX_SKIPPED: u64 = 1 << 20;
/// Changes of the ETag of a file after which it is not compared any more: blocks are verified.
const MAX_CHANGES: u32 = 3;

/// The certificates of the authorities that this host trusts, and what it tells mirrors of its
/// user. Loaded before the process is confined.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    authorities: Arc<Vec<Certificate<'static>>>,
    headers: Arc<[MirrorHeader]>,
    /// What is known of the addresses of mirrors, since the run began.
    standings: Standings,
    /// The hosts to which no proxy leads.
    direct: Direct,
}

impl Access {
    /// The authorities of the system, or of the file that `SSL_CERT_FILE` names, and these fields
    /// of requests. Without an authority, connections with TLS fail.
    pub(crate) fn new(headers: &[MirrorHeader]) -> Self {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "a certificate is not usable");
        }
        let certificates = found.certs.iter().map(|der| Certificate::from_der(der).to_owned());
        Self {
            authorities: Arc::new(certificates.collect()),
            headers: headers.into(),
            standings: Standings::default(),
            direct: Direct::of_environment(),
        }
    }
}

/// The client of one mirror. It has one connection at a time, stores no cookies, and asks for no
/// encoding.
pub(crate) struct Client {
    /// Goes through the proxy, if there is one.
    agent: Agent,
    /// Goes through none.
    direct_agent: Agent,
    direct: Direct,
    proxy: Option<Proxy>,
    /// The connection of an earlier answer may be used: the server may have closed it.
    is_connected: bool,
    gate: Gate,
    need: Arc<Need>,
    site: Site,
    /// Fields of requests to this mirror.
    headers: Vec<MirrorHeader>,
    /// What is known of files that were requested.
    files: BTreeMap<Arc<str>, Known>,
}

fn config(access: &Access, proxy: Option<Proxy>) -> Config {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::clone(&access.authorities)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    Agent::config_builder()
        .tls_config(tls)
        .proxy(proxy)
        .http_status_as_error(false)
        // Each redirect is checked here.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_response_header_size(MAX_HEAD)
        .input_buffer_size(BUFFER)
        .output_buffer_size(MAX_HEAD)
        .max_idle_connections(2)
        .max_idle_connections_per_host(1)
        .timeout_connect(Some(SILENCE))
        .timeout_send_request(Some(SILENCE))
        .user_agent(concat!("fontana/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Files that are remembered: content of thousands of files has each requested once.
const MAX_FILES: usize = 256;

#[derive(Clone, Debug, Default)]
struct Known {
    /// Where redirects have led.
    url: Option<Url>,
    /// A strong validator.
    etag: Option<String>,
    changes: u32,
}

/// A range of a file.
#[derive(Clone, Debug)]
pub(crate) struct FileRange {
    /// The file's path in the directory, encoded.
    pub(crate) path: Arc<str>,
    pub(crate) range: Range<u64>,
    /// The length of the file.
    pub(crate) length: u64,
}

/// An answer that fits the request.
pub(crate) struct Answer {
    /// The bytes of the file that the body has.
    pub(crate) range: Range<u64>,
    /// The server sends the whole file, whatever is asked for.
    pub(crate) is_whole: bool,
    /// The answer says how long it is. If not, its end may come early.
    pub(crate) has_length: bool,
    /// Its type, in words.
    pub(crate) kind: String,
    pub(crate) body: BodyReader<'static>,
}

impl Client {
    pub(crate) fn new(site: Site, need: Arc<Need>, access: &Access) -> Self {
        let url = Url::parse(site.address.as_str()).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        let gate = access.standings.gate(host, site.senders.clone());
        let proxy = Proxy::try_from_env();
        let agent = |proxy: Option<Proxy>| {
            let connector =
                ().chain(ConnectProxyConnector::default())
                    .chain(TcpConnector::default())
                    .chain(Patience(Arc::clone(&need)))
                    .chain(RustlsConnector::default());
            Agent::with_parts(config(access, proxy), connector, gate.clone())
        };
        let (direct_agent, agent) = (agent(None), agent(proxy.clone()));
        let headers = access.headers.iter().filter(|header| *header.mirror() == site.address);
        let headers = headers.cloned().collect();
        Self {
            agent,
            direct_agent,
            direct: access.direct.clone(),
            proxy,
            is_connected: false,
            gate,
            need,
            site,
            headers,
            files: BTreeMap::new(),
        }
    }

    /// The address of the server that the last request went to. `None` through a proxy.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.gate.address()
    }

    /// A request has failed: where redirects have led may be the reason. The next ones begin at the
    /// mirror again.
    pub(crate) fn forget_redirects(&mut self) {
        self.files.values_mut().for_each(|known| known.url = None);
    }

    /// Requests a range of a file.
    pub(crate) fn get(&mut self, wanted: &FileRange) -> Result<Answer, MirrorFailure> {
        let path = &wanted.path;
        loop {
            let known = self.known(path);
            let etag = known.etag.clone().filter(|_| known.changes <= MAX_CHANGES);
            let range = format!("bytes={}-{}", wanted.range.start, wanted.range.end - 1);
            let mut headers = vec![("range", range)];
            headers.extend(etag.clone().map(|etag| ("if-range", etag)));
            let response = self.follow(path, &headers)?;
            let etag_now = strong_etag(response.headers());
            let has_changed = etag.is_some() && etag_now.is_some() && etag != etag_now;
            match response.status().as_u16() {
                206 => {
                    let (range, is_whole) = partial(wanted, response.headers())?;
                    self.known(path).etag = etag_now;
                    return Ok(Answer::new(response, range, is_whole, true));
                }
                // If-Range has made it the whole file: blocks decide whether it is another one.
                200 if has_changed => {
                    let known = self.known(path);
                    known.etag = etag_now;
                    known.changes += 1;
                }
                200 => {
                    let length = content_length(response.headers());
                    check_length(wanted, response.headers(), wanted.length)?;
                    check_encoding(wanted, response.headers(), length.is_some())?;
                    let range = 0..wanted.length;
                    return Ok(Answer::new(response, range, true, length.is_some()));
                }
                _ => return Err(self.status(path, &response)),
            }
        }
    }

    /// Reads a file of at most `limit` bytes.
    pub(crate) fn read(&mut self, path: &Arc<str>, limit: u64) -> Result<Vec<u8>, MirrorFailure> {
        let response = self.follow(path, &[])?;
        if response.status().as_u16() != 200 {
            return Err(self.status(path, &response));
        }
        let mut bytes = Vec::new();
        let mut body = response.into_body().into_reader().take(limit + 1);
        body.read_to_end(&mut bytes).map_err(|error| self.failure_of_read(&error))?;
        if bytes.len() as u64 > limit {
            let what = format!("it has more than {limit} bytes");
            return Err(MirrorFailure::Range { path: path.to_string(), what });
        }
        Ok(bytes)
    }

    /// What an error of a body means.
    pub(crate) fn failure_of_read(&self, error: &io::Error) -> MirrorFailure {
        match error.kind() {
            _ if self.need.left() == 0 => MirrorFailure::Cut,
            _ if is_of_certificate(error) => MirrorFailure::Certificate(told(error)),
            io::ErrorKind::QuotaExceeded => MirrorFailure::Drip,
            io::ErrorKind::TimedOut => self.silent(),
            _ => MirrorFailure::Connection(self.through_proxy(told(error))),
        }
    }

    fn silent(&self) -> MirrorFailure {
        let silent = MirrorFailure::Silent(SILENCE);
        match self.gate.is_proxied() {
            true => MirrorFailure::Connection(self.through_proxy(silent.to_string())),
            false => silent,
        }
    }

    /// Adds the proxy that the last request went through.
    fn through_proxy(&self, what: String) -> String {
        match self.proxy.as_ref().filter(|_| self.gate.is_proxied()) {
            Some(proxy) => {
                format!("{what} (through the proxy {}:{})", proxy.host(), proxy.port())
            }
            None => what,
        }
    }

    fn failure(&self, path: &str, error: &Error) -> MirrorFailure {
        match error {
            Error::Io(error) => match error.get_ref().and_then(|error| error.downcast_ref()) {
                Some(refused) => of_refusal(path, *refused),
                None => self.failure_of_read(error),
            },
            // The server may have noticed first, and ended the connection.
            _ if self.need.left() == 0 => MirrorFailure::Cut,
            Error::Timeout(_) => self.silent(),
            other => MirrorFailure::Connection(self.through_proxy(told(other))),
        }
    }

    fn known(&mut self, path: &Arc<str>) -> &mut Known {
        if self.files.len() >= MAX_FILES && !self.files.contains_key(path) {
            self.files.clear();
        }
        self.files.entry(Arc::clone(path)).or_default()
    }

    /// Makes a request, and follows redirects.
    fn follow(
        &mut self,
        path: &Arc<str>,
        headers: &[(&str, String)],
    ) -> Result<Response<Body>, MirrorFailure> {
        let first = self.site.url(path)?;
        let known = self.known(path).url.clone();
        let is_known = known.is_some();
        let mut url = known.unwrap_or(first);
        for redirects in 0..=MAX_REDIRECTS {
            let response = self.call(path, &url, headers)?;
            let status = response.status().as_u16();
            if !matches!(status, 301 | 302 | 303 | 307 | 308) {
                if is_known && (400..500).contains(&status) {
                    // Where a redirect has led may be valid for a while only.
                    self.known(path).url = None;
                    return self.follow(path, headers);
                }
                self.known(path).url = (redirects > 0 || is_known).then_some(url);
                return Ok(response);
            }
            if redirects == MAX_REDIRECTS {
                break;
            }
            url = next(path, &url, response.headers())?;
        }
        Err(redirect(path, "follows more than five others"))
    }

    /// Makes one request. If the server has closed the connection of the answer before, it is made
    /// again (RFC 9112, section 9.3.1).
    fn call(
        &mut self,
        path: &str,
        url: &Url,
        headers: &[(&str, String)],
    ) -> Result<Response<Body>, MirrorFailure> {
        let is_direct = |proxy: &Proxy| {
            let uri = url.as_str().parse::<Uri>();
            self.direct.includes(url) || uri.is_ok_and(|uri| proxy.is_no_proxy(&uri))
        };
        let is_proxied = self.proxy.as_ref().is_some_and(|proxy| !is_direct(proxy));
        let agent = if is_proxied { &self.agent } else { &self.direct_agent };
        loop {
            let mut request = agent.get(url.as_str()).header("accept-encoding", "identity");
            for (name, value) in headers {
                request = request.header(*name, value);
            }
            for (name, value) in self.headers.iter().filter_map(|it| it.for_request(url)) {
                request = request.header(name, value);
            }
            self.gate.begin(url, is_proxied).map_err(|why| of_refusal(path, why))?;
            let was_connected = std::mem::take(&mut self.is_connected);
            match request.call() {
                Ok(response) => {
                    self.is_connected = true;
                    return Ok(response);
                }
                Err(error) => match self.failure(path, &error) {
                    MirrorFailure::Connection(_) if was_connected => {}
                    failure => return Err(failure),
                },
            }
        }
    }

    fn status(&self, path: &str, response: &Response<Body>) -> MirrorFailure {
        let headers = response.headers();
        let length = content_length(headers);
        let length = length.map_or_else(String::new, |length| format!(", {length} bytes"));
        MirrorFailure::Status {
            path: name(path),
            status: response.status().as_u16(),
            what: self.through_proxy(match kind(headers) {
                Some(kind) => format!(" ({kind}{length})"),
                None => String::new(),
            }),
            retry_after: retry_after(headers),
        }
    }
}

impl Answer {
    fn new(response: Response<Body>, range: Range<u64>, is_whole: bool, has_length: bool) -> Self {
        let kind = of_kind(response.headers());
        Self { range, is_whole, has_length, kind, body: response.into_body().into_reader() }
    }
}

/// The path of a file without a query.
fn name(path: &str) -> String {
    path.split('?').next().unwrap_or_default().to_owned()
}

/// The type of an answer.
fn kind(headers: &HeaderMap) -> Option<String> {
    const MAX_LENGTH: usize = 64;
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let kind = kind.split(';').next()?.trim();
    Some(kind.chars().filter(|c| !c.is_control()).take(MAX_LENGTH).collect())
}

/// The same, after a number of bytes.
fn of_kind(headers: &HeaderMap) -> String {
    kind(headers).map_or_else(String::new, |kind| format!(" of {kind}"))
}

/// An encoding is a label: files with the ending .gz often have it. The answer is the file if it is
/// as long as the file.
fn check_encoding(
    wanted: &FileRange,
    headers: &HeaderMap,
    has_length: bool,
) -> Result<(), MirrorFailure> {
    match headers.get(header::CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" && !has_length => {
            let encoding: String = String::from_utf8_lossy(encoding.as_bytes())
                .chars()
                .filter(|c| !c.is_control())
                .take(32)
                .collect();
            let what = format!("it has the encoding {encoding:?}, and no length");
            Err(MirrorFailure::Range { path: name(&wanted.path), what })
        }
        _ => Ok(()),
    }
}

/// The range of a 206 answer, and whether it is taken for a whole file. It contains the beginning
/// of what was asked for.
fn partial(wanted: &FileRange, headers: &HeaderMap) -> Result<(Range<u64>, bool), MirrorFailure> {
    let refused = |what: String| MirrorFailure::Range { path: name(&wanted.path), what };
    let text = headers.get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
    let range = text.and_then(parse_content_range);
    let (range, length) =
        range.ok_or_else(|| refused(format!("an answer{} without its range", of_kind(headers))))?;
    if length.is_some_and(|length| length != wanted.length) {
        let length = length.unwrap_or_default();
        let kind = of_kind(headers);
        return Err(refused(format!("{length} bytes{kind} instead of {}", wanted.length)));
    }
    let is_whole = range.start == 0 && range.end == wanted.length;
    let is_near = range.start <= wanted.range.start
        && wanted.range.start < range.end
        && wanted.range.start - range.start <= MAX_SKIPPED;
    if !is_near && !is_whole {
        return Err(refused(format!("bytes {range:?} instead of {:?}", wanted.range)));
    }
    check_length(wanted, headers, range.end - range.start)?;
    check_encoding(wanted, headers, length.is_some())?;
    Ok((range, !is_near))
}

/// The address of a redirect, if it may be followed.
fn next(path: &str, from: &Url, headers: &HeaderMap) -> Result<Url, MirrorFailure> {
    let location = headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let to = location.and_then(|location| from.join(location).ok());
    let to = to.ok_or_else(|| redirect(path, "has no address"))?;
    match (from.scheme(), to.scheme()) {
        (_, "https") | ("http", "http") => Ok(to),
        ("https", "http") => Err(redirect(path, "leads from https to http")),
        _ => Err(redirect(path, "leads to another scheme")),
    }
}

fn redirect(path: &str, what: &'static str) -> MirrorFailure {
    MirrorFailure::Redirect { path: path.to_owned(), what }
}

fn of_refusal(path: &str, refused: Refused) -> MirrorFailure {
    match refused {
        Refused::Inside => redirect(path, "leads from a public address to a private one"),
        Refused::Elsewhere => redirect(path, "leads to another private address"),
        Refused::Rebound => MirrorFailure::Rebound,
        Refused::OtherHost => redirect(
            path,
            "leads to another host: to allow that, name the mirror beside the ticket",
        ),
        Refused::Far => MirrorFailure::Far,
    }
}

/// The length of the body, if the answer has one.
fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn check_length(wanted: &FileRange, headers: &HeaderMap, right: u64) -> Result<(), MirrorFailure> {
    match content_length(headers) {
        Some(length) if length != right => {
            let what = format!("{length} bytes{} instead of {right}", of_kind(headers));
            Err(MirrorFailure::Range { path: name(&wanted.path), what })
        }
        _ => Ok(()),
    }
}

/// An error as a reason, bounded: it may quote names of a server's certificate.
fn told(error: &impl Display) -> String {
    const MAX_LENGTH: usize = 200;
    error.to_string().chars().filter(|c| !c.is_control()).take(MAX_LENGTH).collect()
}

/// Whether TLS has refused the server's certificate: another attempt would end in the same way.
fn is_of_certificate(error: &io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(error, Some(rustls::Error::InvalidCertificate(_)))
}

/// A strong validator (RFC 9110, section 8.8.1): others are of no use with If-Range.
fn strong_etag(headers: &HeaderMap) -> Option<String> {
    let etag = headers.get(header::ETAG)?.to_str().ok()?;
    let is_strong = etag.len() >= 2 && etag.starts_with('"') && etag.ends_with('"');
    (is_strong && etag.len() <= 256).then(|| etag.to_owned())
}

/// `bytes FIRST-LAST/LENGTH`, or `*` as the length.
fn parse_content_range(text: &str) -> Option<(Range<u64>, Option<u64>)> {
    let (range, length) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let number = |text: &str| {
        let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_decimal.then(|| text.parse::<u64>().ok()).flatten()
    };
    let (first, last) = (number(first)?, number(last)?);
    let length = if length == "*" { None } else { Some(number(length)?) };
    let end = last.checked_add(1)?;
    (first < end && length.is_none_or(|length| end <= length)).then_some((first..end, length))
}

#[cfg(test)]
mod expired;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_range_is_what_the_rfc_says() {
        assert_eq!(parse_content_range("bytes 0-99/1000"), Some((0..100, Some(1000))));
        assert_eq!(parse_content_range("bytes 5-5/*"), Some((5..6, None)));
        for wrong in [
            "bytes */1000",
            "bytes 5-4/9",
            "bytes 0-9/9",
            "bytes 0-/9",
            "bytes +0-1/9",
            "0-9/10",
            "bytes 0-18446744073709551615/*",
        ] {
            assert_eq!(parse_content_range(wrong), None, "{wrong}");
        }
    }
}
