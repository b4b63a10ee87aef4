//! A mirror whose certificate expires while a receiver runs.

use super::*;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, Stream};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Requests that a connection answers.
const PER_CONNECTION: usize = 2;

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A value of DER: its tag, its length, and these parts.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let value = parts.concat();
    let length = u16::try_from(value.len()).unwrap().to_be_bytes();
    // In as few bytes as possible.
    let length = match length {
        [0, least @ 0..0x80] => vec![least],
        [0, less] => vec![0x81, less],
        [high, low] => vec![0x82, high, low],
    };
    [&[tag][..], &length, &value].concat()
}

/// `YYYYMMDDHHMMSSZ`, before the year 2100.
fn generalized_time(unix_seconds: u64) -> String {
    let (mut days, seconds) = (unix_seconds / 86_400, unix_seconds % 86_400);
    let (mut year, mut month) = (1970, 1);
    let days_of = |year: u64, month| match month {
        2 => 28 + u64::from(year.is_multiple_of(4)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    while days >= days_of(year, month) {
        days -= days_of(year, month);
        (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    }
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{:02}{hours:02}{minutes:02}{seconds:02}Z", days + 1)
}

/// A certificate for `localhost` that is its own authority, valid until a time.
fn certificate(key: &Ed25519KeyPair, until: u64) -> Vec<u8> {
    const ED25519: &[u8] = &[0x06, 3, 0x2B, 101, 112];
    const COMMON_NAME: &[u8] = &[0x06, 3, 0x55, 4, 3];
    const SUBJECT_ALT_NAME: &[u8] = &[0x06, 3, 0x55, 29, 17];
    let algorithm = der(0x30, &[ED25519]);
    let name = der(0x30, &[COMMON_NAME, &der(0x0C, &[b"localhost"])]);
    let name = der(0x30, &[&der(0x31, &[&name])]);
    let time = |at| der(0x18, &[generalized_time(at).as_bytes()]);
    let validity = der(0x30, &[&time(until - 86_400), &time(until)]);
    let public = der(0x03, &[&[0], key.public_key().as_ref()]);
    let public = der(0x30, &[&algorithm, &public]);
    let names = der(0x30, &[&der(0x82, &[b"localhost"])]);
    let extension = der(0x30, &[SUBJECT_ALT_NAME, &der(0x04, &[&names])]);
    let extensions = der(0xA3, &[&der(0x30, &[&extension])]);
    let version_3 = der(0xA0, &[&[0x02, 1, 2]]);
    let serial = [0x02, 1, 1];
    let parts: [&[u8]; 8] =
        [&version_3, &serial, &algorithm, &name, &validity, &name, &public, &extensions];
    let to_be_signed = der(0x30, &parts);
    let signature = der(0x03, &[&[0], key.sign(&to_be_signed).as_ref()]);
    der(0x30, &[&to_be_signed, &algorithm, &signature])
}

/// Answers the requests of a connection with the kind of its handshake.
fn answer(config: Arc<ServerConfig>, mut tcp: TcpStream) -> io::Result<()> {
    let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = BufReader::new(Stream::new(&mut tls, &mut tcp));
    for number in 1..=PER_CONNECTION {
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
        }
        let stream = stream.get_mut();
        let kind = format!("{:?}", stream.conn.handshake_kind());
        let then = if number == PER_CONNECTION { "close" } else { "keep-alive" };
        let head = format!("Content-Length: {}\r\nConnection: {then}\r\n", kind.len());
        stream.write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n{kind}").as_bytes())?;
    }
    tls.send_close_notify();
    tls.write_tls(&mut tcp).map(drop)
}

fn client(port: u16, authority: &[u8]) -> Client {
    let site = Site::all(&[format!("https://localhost:{port}/").parse().unwrap()], &[]);
    let access = Access {
        authorities: Arc::new(vec![Certificate::from_der(authority).to_owned()]),
        headers: [].into(),
        standings: Standings::default(),
        direct: Direct::of_environment(),
    };
    let need = Arc::<Need>::default();
    need.begin(u64::MAX);
    Client::new(site[0].clone(), need, &access)
}

/// What is requested of a mirror whose certificate is valid for so many seconds: before it expires,
/// and three times afterwards, at last by another run. `None` if it has expired too early.
fn read_for(seconds: u64) -> Option<[Result<String, MirrorFailure>; 4]> {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let key = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
    let until = unix_seconds() + seconds;
    let certificate = certificate(&key, until);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from(certificate.clone())],
            PrivatePkcs8KeyDer::from(pkcs8.as_ref().to_vec()).into(),
        );
    let config = Arc::new(config.unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It ends with the process.
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            // One of the handshakes fails.
            let _ = answer(Arc::clone(&config), tcp.unwrap());
        }
    });
    let path: Arc<str> = "file".into();
    let read = |client: &mut Client| {
        client.read(&path, 1_000).map(|bytes| String::from_utf8(bytes).unwrap())
    };
    let mut client_of_run = client(port, &certificate);
    let first = read(&mut client_of_run);
    if first.is_err() && unix_seconds() > until {
        return None;
    }
    while unix_seconds() <= until {
        std::thread::sleep(Duration::from_millis(50));
    }
    let [second, third] = [(); 2].map(|()| read(&mut client_of_run));
    // The server answers one connection at a time.
    drop(client_of_run);
    Some([first, second, third, read(&mut client(port, &certificate))])
}

/// A certificate is checked by the first handshake of a run. A connection that is kept, and one
/// that resumes its session, do not check it again.
#[test]
fn a_certificate_that_expires_is_refused_by_the_next_run() {
    let [first, kept, resumed, other] = [1, 10, 60].into_iter().find_map(read_for).unwrap();
    assert_eq!([first.as_deref(), kept.as_deref()], [Ok("Some(Full)"); 2]);
    assert_eq!(resumed.as_deref(), Ok("Some(Resumed)"));
    assert!(matches!(other, Err(MirrorFailure::Certificate(_))), "{other:?}");
}
