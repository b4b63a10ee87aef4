//! `fontana serve`, `fontana recv --then-serve`, and clients that others wrote.

use crate::nginx::Nginx;
use crate::support::{Run, Running, Sender, arguments, noise, place, run};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A server on a free port, and what it has said of itself.
struct Served {
    running: Running,
    serving: Value,
    /// The address of its directory.
    web: String,
}

impl Served {
    fn start(words: &str, files: &[&Path]) -> Self {
        let words = format!("serve --json --listen 127.0.0.1:0 {words}");
        Self::of(Running::start(&arguments(&words, files)))
    }

    /// Waits until it serves.
    fn of(mut running: Running) -> Self {
        let serving = event(&mut running, "serving");
        let web = format!("http://{}/", serving["listen"].as_str().unwrap());
        Self { running, serving, web }
    }

    fn ticket(&self) -> &str {
        self.serving["ticket"].as_str().unwrap()
    }

    fn manifest(&self) -> &str {
        self.serving["manifest"].as_str().unwrap()
    }

    fn address(&self) -> SocketAddr {
        self.serving["listen"].as_str().unwrap().parse().unwrap()
    }

    /// Ends it as a service manager does. Returns its last event.
    fn stop(self) -> Value {
        self.running.signal(Signal::TERM);
        self.running.wait().expect(130).event("stopped")
    }
}

/// What curl gets: head and body.
fn curl(words: &str, url: &str) -> (String, Vec<u8>) {
    let output = Command::new("curl")
        .args(["--silent", "--include", "--max-time", "20", "--path-as-is"])
        .args(words.split_whitespace())
        .arg(url)
        .output()
        .unwrap();
    let end = output.stdout.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, body) = output.stdout.split_at(end.expect("a head") + 4);
    (String::from_utf8(head.to_vec()).unwrap().to_ascii_lowercase(), body.to_vec())
}

/// A tree of a large file, a small one with a strange name, and an empty one.
fn tree(directory: &Path) -> std::path::PathBuf {
    let tree = directory.join("some files");
    std::fs::create_dir_all(tree.join("below")).unwrap();
    std::fs::write(tree.join("a"), noise(2_500_000, 1)).unwrap();
    std::fs::write(tree.join("below/b c?"), noise(40_000, 2)).unwrap();
    std::fs::write(tree.join("empty"), "").unwrap();
    // Beside the tree: no request reaches it.
    std::fs::write(directory.join("secret"), "secret").unwrap();
    tree
}

fn receive(words: &str, into: &Path) -> Run {
    run(&arguments(&format!("recv {words} --json -o"), &[into])).expect(0)
}

fn assert_received(tree: &Path, into: &Path) {
    for name in ["a", "below/b c?", "empty"] {
        let (sent, got) = (tree.join(name), into.join("some files").join(name));
        assert!(std::fs::read(got).unwrap() == std::fs::read(sent).unwrap(), "{name}");
    }
}

#[test]
fn curl_gets_files_ranges_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let tree = tree(directory.path());
    let served = Served::start("", &[&tree]);
    let file = format!("{}some%20files/a", served.web);
    let content = std::fs::read(tree.join("a")).unwrap();
    let (head, body) = curl("", &file);
    assert!(head.starts_with("http/1.1 200") && head.contains("accept-ranges: bytes"), "{head}");
    assert!(head.contains("content-length: 2500000") && body == content, "{head}");
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();

    for (range, wanted) in
        [("0-0", 0..1), ("-7", 2_499_993..2_500_000), ("999-300010", 999..300_011)]
    {
        let (head, body) = curl(&format!("--range {range}"), &file);
        assert!(head.starts_with("http/1.1 206"), "{head}");
        let field = format!("content-range: bytes {}-{}/2500000", wanted.start, wanted.end - 1);
        assert!(head.contains(&field) && body == content[wanted], "{head}");
    }
    let (head, _) = curl("--range 2500000-", &file);
    assert!(head.starts_with("http/1.1 416") && head.contains("bytes */2500000"), "{head}");
    for (of, code) in [(etag, "206"), ("\"another\"", "200")] {
        let (head, _) = curl(&format!("--range 1-2 --header If-Range:{of}"), &file);
        assert!(head.starts_with(&format!("http/1.1 {code}")), "{head}");
    }
    let (head, body) = curl("--head", &file);
    assert!(head.contains("content-length: 2500000") && body.is_empty(), "{head}");
    let (_, body) = curl("", &format!("{}some%20files/below/b%20c%3F", served.web));
    assert!(body == noise(40_000, 2));
    assert!(curl("", &format!("{}some%20files/empty", served.web)).0.contains("content-length: 0"));
    let manifest = format!("{}{}.fontana", served.web, served.manifest());
    assert!(curl("", &manifest).1.ends_with(&hex(served.manifest())));

    for path in [
        "secret",
        "../secret",
        "some%20files/../secret",
        "some%20files/%2e%2e/secret",
        "some%20files/..%2fsecret",
        "some%20files",
        "some%20files/",
        "",
        "%",
        "etc/passwd",
        "/etc/passwd",
        "f/",
        "f//1",
    ] {
        let (head, body) = curl("", &format!("{}{path}", served.web));
        assert!(head.starts_with("http/1.1 404"), "{path}: {head}");
        assert!(!body.windows(6).any(|part| part == b"secret"), "{path}");
    }
    assert!(curl("--request POST", &file).0.starts_with("http/1.1 405"));
    let long = format!("--header X:{}", "x".repeat(20_000));
    assert!(curl(&long, &file).0.starts_with("http/1.1 431"));
    // A file that changes is not served any more.
    std::fs::write(tree.join("below/b c?"), noise(40_001, 2)).unwrap();
    let changed = Run::of(
        Command::new("curl")
            .args(["--silent", "--max-time", "20"])
            .arg(format!("{}some%20files/below/b%20c%3F", served.web)),
    );
    assert_ne!(changed.code, Some(0), "an answer that is not complete");
    served.running.signal(Signal::TERM);
    served.running.wait().expect(8);
}

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn symbols_have_no_end_unless_they_are_counted_and_none_comes_twice() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, noise(3_000_000, 1)).unwrap();
    let served = Served::start("", &[&file]);
    let symbols = format!("{}f/{}/1", served.web, served.manifest());
    let frame = 1404;
    let ids = |body: &[u8]| -> Vec<u32> {
        let id = |frame: &[u8]| u32::from_be_bytes(frame[..4].try_into().unwrap());
        body.chunks_exact(frame).map(id).collect()
    };
    // Counted: a length, these blocks, and no other.
    let (head, body) = curl("", &format!("{symbols}?start=0&blocks=0:500,2:7"));
    assert!(head.contains(&format!("content-length: {}", 507 * frame)), "{head}");
    let first = ids(&body);
    assert_eq!(first.len(), 507);
    assert!(first.iter().all(|id| id & 0xff_ffff >= 1 << 23));
    assert_eq!(first.iter().filter(|&&id| id >> 24 == 2).count(), 7);
    // From where it was: no symbol of the first answer.
    let next = ids(&curl("", &format!("{symbols}?blocks=0:500:500,2:7:7")).1);
    let all: BTreeSet<u32> = first.iter().chain(&next).copied().collect();
    assert_eq!(all.len(), 2 * 507);
    // Without counts: all blocks in about equal shares, until the client has enough.
    let (mut stream, mut body) = (TcpStream::connect(served.address()).unwrap(), vec![0; 6 << 20]);
    write!(stream, "GET /f/{}/1?start=0 HTTP/1.1\r\nHost: x\r\n\r\n", served.manifest()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.read_exact(&mut body).unwrap();
    drop(stream);
    for (query, code) in [
        ("?blocks=0:0", "400"),
        ("?blocks=x", "400"),
        ("?start=99999999", "400"),
        ("?blocks=3:1", "404"),
        ("?blocks=0:200000", "400"),
    ] {
        let (head, _) = curl("", &format!("{symbols}{query}"));
        assert!(head.starts_with(&format!("http/1.1 {code}")), "{query}: {head}");
    }
    let object = |toi: &str| format!("{}f/{}/{toi}", served.web, served.manifest());
    for url in [object("2"), object("x"), object(""), symbols.replace("/f/", "/f/0")] {
        assert!(curl("", &url).0.starts_with("http/1.1 404"), "{url}");
    }
    let stopped = served.stop();
    assert!(stopped["sent_symbols"].as_u64().unwrap() > 4_000, "{stopped}");
}

#[test]
fn receivers_draw_fresh_symbols_directly_and_through_nginx() {
    let directory = tempfile::tempdir().unwrap();
    let tree = tree(directory.path());
    let served = Served::start("", &[&tree]);
    let into = directory.path().join("into");
    let received = receive(served.ticket(), &into);
    assert_received(&tree, &into);
    let mirror = received.event("mirror");
    assert_eq!((&mirror["fresh"], &mirror["shelf"]), (&true.into(), &Value::Null), "{mirror}");
    assert!(mirror["dropped"].is_null() && mirror["useless_bytes"] == 0, "{mirror}");
    assert_eq!(received.event("summary")["verified"], "digest");

    let goes_through_nginx = Nginx::is_available();
    if goes_through_nginx {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let listen = SocketAddr::from(([127, 0, 0, 1], port));
        let _nginx = Nginx::proxy(listen, &served.web);
        Nginx::wait_until_it_listens(listen);
        let ticket = served.ticket().replace(&served.web, &format!("http://{listen}/"));
        let into = directory.path().join("behind");
        let mirror = receive(&ticket, &into).event("mirror");
        assert!(mirror["fresh"] == true && mirror["dropped"].is_null(), "{mirror}");
        assert_received(&tree, &into);
    }
    let stopped = served.stop();
    // What the first receiver got, others got again, and each with a few requests.
    let of = |field: &str| stopped[field].as_u64().unwrap();
    assert!(of("requests") < 60, "{stopped}");
    let encoded_once = of("encoded_symbols") < of("sent_symbols") * 3 / 4;
    assert!(encoded_once || !goes_through_nginx, "{stopped}");
}

/// A session of one block of 10 000 symbols that is sent once, its manifest, and what a receiver
/// with these options says at its end.
fn receive_once(loss: u32, options: impl Fn(&str) -> String) -> Run {
    let directory = tempfile::tempdir().unwrap();
    let (file, into) = (directory.path().join("file"), directory.path().join("into"));
    let (manifest, content) = (directory.path().join("manifest"), noise(14_000_000, 1));
    std::fs::write(&file, &content).unwrap();
    let send = format!("--to {} --rate 60M --push 0 --manifest {}", place(), manifest.display());
    let sender = Sender::start(&send, &[&file]);
    // It writes its manifest before it says the ticket.
    let words = format!("serve --json --listen 127.0.0.1:0 --manifest {}", manifest.display());
    let served = Served::of(Running::start(&arguments(&words, &[&file])));
    let (ticket, options) = (&sender.ticket, options(&served.web));
    let words = format!("recv {ticket} {options} -i lo FONTANA_SIMULATE_LOSS={loss} --json -o");
    let received = run(&arguments(&words, &[&into])).expect(0);
    assert!(std::fs::read(into.join("file")).unwrap() == content);
    sender.into_running().wait().expect(0);
    served.stop();
    received
}

#[test]
fn a_tail_costs_what_is_missing() {
    let received = receive_once(5, |web| format!("{web} --mirrors 4s"));
    let (mirror, summary) = (received.event("mirror"), received.event("summary"));
    let of = |event: &Value, field: &str| event[field].as_u64().unwrap();
    let missing = of(&summary, "source_symbols") - of(&summary, "fresh");
    // Frames of 4 bytes and a symbol.
    let symbol_size = of(&summary, "payload_bytes") / of(&summary, "packets").max(1);
    let drawn = of(&mirror, "bytes") / (symbol_size + 4);
    assert!(missing > 300, "{summary}");
    assert!(drawn as f64 <= 1.12 * missing as f64, "{drawn} for {missing}: {mirror} {summary}");
    assert_eq!((&mirror["fresh"], &mirror["useless_bytes"]), (&true.into(), &0.into()), "{mirror}");
}

#[test]
fn mirrors_begin_when_the_group_has_brought_its_part() {
    let received = receive_once(0, |web| format!("{web} --mirrors last"));
    // The group has brought everything, but for what a busy host has dropped.
    let summary = received.event("summary");
    let of = |field: &str| summary[field].as_u64().unwrap();
    assert!(of("fresh") * 5 >= of("source_symbols") * 3, "{summary}");
    let received = receive_once(30, |web| format!("{web} --mirrors 20%"));
    let (mirror, summary) = (received.event("mirror"), received.event("summary"));
    assert!(mirror["bytes"].as_u64().unwrap() > 0, "{mirror}");
    let fresh = summary["fresh"].as_u64().unwrap();
    assert!(fresh * 5 >= summary["source_symbols"].as_u64().unwrap(), "{summary}");
}

#[test]
fn all_mirrors_together_keep_to_a_rate() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, noise(1_500_000, 1)).unwrap();
    let servers = [Served::start("", &[&file]), Served::start("", &[&file])];
    let words = format!("{} {} --max-rate 6M", servers[0].ticket(), servers[1].web);
    let received = receive(&words, &directory.path().join("into"));
    // 12 Mbit at 6 Mbit/s, but for what may be ahead.
    let seconds = received.event("summary")["seconds"].as_f64().unwrap();
    assert!((1.6..20.0).contains(&seconds), "{seconds}");
    servers.into_iter().for_each(|server| drop(server.stop()));
}

/// The symbols of all blocks for 20 clients at once, and for one alone.
#[test]
fn twenty_clients_share_what_is_computed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, noise(8_000_000, 1)).unwrap();
    let encoded = [1, 20].map(|clients| {
        let served = Served::start("", &[&file]);
        let url = format!("{}f/{}/1?start=0&blocks=", served.web, served.manifest());
        let list: Vec<_> = (0..7).map(|sbn| format!("{sbn}:817")).collect();
        let url = url + &list.join(",");
        let client = || {
            let mut curl = Command::new("curl");
            curl.args(["--silent", "--output", "/dev/null", &url]).spawn().unwrap()
        };
        let children: Vec<_> = (0..clients).map(|_| client()).collect();
        children.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
        let stopped = served.stop();
        assert_eq!(stopped["sent_symbols"], 7 * 817 * clients, "{stopped}");
        stopped["encoded_symbols"].as_u64().unwrap()
    });
    assert!(encoded[1] as f64 <= 1.2 * encoded[0] as f64, "{encoded:?}");
}

/// Clients that go before their symbols are computed, and ask for symbols that no other one gets.
#[test]
fn clients_that_have_gone_cost_others_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fontana_testing::noise_file(&file, 4 * 14_000_000, 1).unwrap();
    let served = Served::start("--block-size 14M --memory 64M", &[&file]);
    let request = |block: u32, share: &str| {
        let mut stream = TcpStream::connect(served.address()).unwrap();
        let path = format!("f/{}/1?blocks={block}:{share}", served.manifest());
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        stream
    };
    for number in 0..400 {
        let share = if number % 2 == 0 { "131072" } else { "131072:8388607" };
        drop(request(number % 4, share));
        // Connections beyond 64 are refused.
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut answer = Vec::new();
    request(3, "200").read_to_end(&mut answer).unwrap();
    assert!(answer.len() > 200 * 1_000, "{:?}", String::from_utf8_lossy(&answer));
    let stopped = served.stop();
    assert!(stopped["encoded_symbols"].as_u64().unwrap() < 100 * 64, "{stopped}");
}

/// Connections that are idle give way to it, and those that have not ended their answer do not.
#[test]
fn the_65th_client_waits_for_a_place() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, noise(20_000_000, 1)).unwrap();
    let served = Served::start("", &[&file]);
    let ask = |stream: &mut TcpStream, range: &str| {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "GET /file HTTP/1.1\r\nHost: x\r\nRange: bytes={range}\r\n\r\n").unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(String::from_utf8_lossy(&head), "HTTP/1.1 206");
    };
    let mut clients: Vec<TcpStream> =
        (0..64).map(|_| TcpStream::connect(served.address()).unwrap()).collect();
    // More than fits into the buffers of a connection: these take nothing, and are not interrupted.
    clients.iter_mut().for_each(|client| ask(client, "0-19999999"));
    let waiting = Command::new("curl")
        .args(["--silent", "--max-time", "30", "--range", "0-9"])
        .arg(format!("{}file", served.web))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut answer = Vec::new();
    clients.pop().unwrap().take(1_000_000).read_to_end(&mut answer).unwrap();
    assert_eq!(answer.len(), 1_000_000, "it is served beside the one that waits");
    // It has closed its connection.
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(output.stdout, noise(20_000_000, 1)[..10]);
    drop(clients);
    assert!(served.stop()["waited"].is_u64());
}

#[test]
fn a_receiver_serves_what_it_has_received() {
    let directory = tempfile::tempdir().unwrap();
    let tree = tree(directory.path());
    let (first, second) = (directory.path().join("first"), directory.path().join("second"));
    let origin = Served::start("", &[&tree]);
    let words = format!("recv {} --then-serve 127.0.0.1:0 --json -o", origin.ticket());
    let relay = Served::of(Running::start(&arguments(&words, &[&first])));
    assert_eq!(relay.serving["manifest"], origin.serving["manifest"]);
    origin.stop();
    assert_received(&tree, &first);
    let mirror = receive(relay.ticket(), &second).event("mirror");
    assert!(mirror["fresh"] == true && mirror["dropped"].is_null(), "{mirror}");
    assert_received(&tree, &second);
    relay.stop();
}

/// The relay takes eight seconds for 4 MB. Its first block passes through it long before its end.
#[test]
fn a_receiver_serves_what_it_is_receiving() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, noise(4_000_000, 3)).unwrap();
    let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
    let origin = Served::start("--block-size 262144", &[&file]);
    let receive = |ticket: &str, options: &str, into: &Path| {
        let words = format!("recv {ticket} {options} --json --then-serve 127.0.0.1:0 -o");
        let mut running = Running::start(&arguments(&words, &[into]));
        let holding = event(&mut running, "holding");
        let web = format!("http://{}/file", holding["listen"].as_str().unwrap());
        (running, holding["ticket"].as_str().unwrap().to_owned(), web)
    };
    let (mut relay, ticket, relay_web) = receive(origin.ticket(), "--max-rate 4M", &first);
    let (mut last, _, web) = receive(&ticket, "", &second);
    let block = loop {
        let (head, body) = curl("--range 0-1023", &web);
        if head.starts_with("http/1.1 206") {
            break body;
        }
        assert!(head.starts_with("http/1.1 503") && head.contains("retry-after: 1"), "{head}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let (head, _) = curl("--range 3999999-", &relay_web);
    assert!(head.starts_with("http/1.1 503"), "the relay is not complete: {head}");
    assert!(block == noise(4_000_000, 3)[..1024]);
    for running in [&mut relay, &mut last] {
        assert_eq!(event(running, "summary")["verdict"], "complete");
    }
    assert!(std::fs::read(second.join("file")).unwrap() == noise(4_000_000, 3));
    let (relay, last) = (Served::of(relay), Served::of(last));
    assert_eq!(relay.serving["fresh"], true);
    let (head, body) = curl("", &web);
    assert!(head.starts_with("http/1.1 200") && body == noise(4_000_000, 3), "{head}");
    last.stop();
    relay.stop();
}

/// A receiver that reports to its sender may send from one socket alone, and listen all the same.
#[test]
fn a_receiver_that_reports_serves() {
    let directory = tempfile::tempdir().unwrap();
    let (file, into) = (directory.path().join("file"), directory.path().join("into"));
    std::fs::write(&file, noise(300_000, 3)).unwrap();
    let sender = Sender::start(&format!("--to {} --rate 50M", place()), &[&file]);
    assert!(sender.ticket.contains("ask="), "{}", sender.ticket);
    let words = format!("recv {} --then-serve 127.0.0.1:0 --json -o", sender.ticket);
    let served = Served::of(Running::start(&arguments(&words, &[&into])));
    let (head, body) = curl("", &format!("{}file", served.web));
    assert!(head.starts_with("http/1.1 200") && body == noise(300_000, 3), "{head}");
    served.stop();
    sender.finish();
}

/// The last mirror is dropped, and the session goes on.
#[test]
fn a_mirror_of_other_bytes_costs_no_packet_of_the_session() {
    let directory = tempfile::tempdir().unwrap();
    let [ours, other, into] = ["ours", "other", "into"].map(|name| directory.path().join(name));
    for (directory, seed) in [(&ours, 3), (&other, 4)] {
        std::fs::create_dir(directory).unwrap();
        std::fs::write(directory.join("file"), noise(4_000_000, seed)).unwrap();
    }
    let words = format!("--to {} --rate 20M --block-symbols 500", place());
    let sender = Sender::start(&words, &[&ours.join("file")]);
    let mirror = Served::start("", &[&other.join("file")]);
    let web = mirror.web.clone();
    let words = format!("recv {} {web} --timeout 50 --json -o", sender.ticket);
    let received = run(&arguments(&words, &[&into])).expect(0);
    assert!(std::fs::read(into.join("file")).unwrap() == noise(4_000_000, 3));
    assert!(!received.event("mirror")["dropped"].is_null(), "{}", received.stdout);
    mirror.stop();
    sender.finish();
}

/// Reads events until one of this name.
pub(crate) fn event(running: &mut Running, name: &str) -> Value {
    loop {
        let event: Value = serde_json::from_str(&running.line()).unwrap();
        if event["event"] == name {
            return event;
        }
    }
}

#[test]
fn arguments_that_no_server_can_follow_are_2_or_5() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let refused = run(&arguments("serve --listen 0.0.0.0:0", &[&file])).expect(2);
    assert!(refused.stderr.contains("--web http://HOST:"), "{}", refused.stderr);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let words = format!("serve --listen {}", taken.local_addr().unwrap());
    let refused = run(&arguments(&words, &[&file])).expect(5);
    assert!(refused.stderr.contains("cannot listen at"), "{}", refused.stderr);
    run(&arguments("serve", &[])).expect(2);
    let hash = "07".repeat(32);
    let ticket = format!("fontana://web/?manifest={hash}&web=http://127.0.0.1:9/");
    for other in ["--only *.jpg", "--to -", "--one-way"] {
        run(&arguments(&format!("recv {ticket} --then-serve 127.0.0.1:0 {other}"), &[])).expect(2);
    }
    let session = format!("fontana://239.255.77.1:7701/5?manifest={hash}");
    for words in [
        format!("{ticket} --mirrors 3s"),
        format!("{session} --mirrors 3s"),
        format!("{session} http://127.0.0.1:9/ --mirrors 101%"),
        format!("{session} http://127.0.0.1:9/ --mirrors soon"),
    ] {
        run(&arguments(&format!("recv {words} -i lo"), &[])).expect(2);
    }
    let missing = directory.path().join("missing");
    run(&arguments("serve --manifest", &[&missing, &file])).expect(6);
}

#[test]
fn a_file_with_other_bytes_than_its_manifest_is_not_served() {
    let directory = tempfile::tempdir().unwrap();
    let [right, wrong] = ["right", "wrong"].map(|name| directory.path().join(name));
    for path in [&right, &wrong] {
        std::fs::write(path, noise(1_000_000, 1)).unwrap();
    }
    let manifest = |name: &str, files: &[&Path]| {
        let manifest = directory.path().join(name);
        let words =
            format!("--open --block-symbols 300 --push 0 --manifest {}", manifest.display());
        Sender::start(&format!("{words} --to {}", place()), files).into_running().wait().expect(0);
        format!("--manifest {}", manifest.display())
    };
    let (of_both, of_wrong) = (manifest("both", &[&right, &wrong]), manifest("one", &[&wrong]));
    // A byte of the last block, at the same time.
    let modified = std::fs::metadata(&wrong).unwrap().modified().unwrap();
    let mut content = noise(1_000_000, 1);
    content[999_000] ^= 1;
    std::fs::write(&wrong, content).unwrap();
    std::fs::File::options().write(true).open(&wrong).unwrap().set_modified(modified).unwrap();

    let served = Served::start(&of_both, &[&right, &wrong]);
    assert_eq!(curl("", &format!("{}right", served.web)).1.len(), 1_000_000);
    assert_eq!(curl("--range 0-99", &format!("{}wrong", served.web)).1.len(), 100, "a right block");
    assert!(curl("", &format!("{}wrong", served.web)).1.len() < 1_000_000);
    assert!(curl("--range 0-99", &format!("{}wrong", served.web)).1.is_empty(), "given up");
    let symbols = format!("{}f/{}/2?start=0&blocks=0:10", served.web, served.manifest());
    assert!(curl("", &symbols).1.is_empty());
    served.running.signal(Signal::TERM);
    let ended = served.running.wait().expect(8);
    let warning = ended.event("warning")["message"].as_str().unwrap().to_owned();
    assert!(warning.contains("wrong"), "{warning}");

    // Nothing is left.
    let served = Served::start(&of_wrong, &[&wrong]);
    curl("", &format!("{}wrong", served.web));
    served.running.wait().expect(8);
}
