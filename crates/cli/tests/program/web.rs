//! `fontana publish`, and `fontana recv` with mirrors: web servers that others wrote.

use crate::nginx::{Certificate, Nginx};
use crate::support::{Run, Running, arguments, fontana, noise, place, run};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The web server of Python, which knows no ranges. Ended when dropped.
pub(crate) struct Python {
    child: Child,
    pub(crate) address: String,
}

impl Python {
    pub(crate) fn start(directory: &Path) -> Self {
        let mut child = Command::new("python3")
            .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory"])
            .arg(directory)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Serving HTTP on 127.0.0.1 port 41234 (http://127.0.0.1:41234/) ...
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split(['(', ')']).nth(1).unwrap_or_else(|| panic!("{line}"));
        Self { address: address.to_owned(), child }
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn publish(words: &str, paths: &[&Path]) -> Run {
    run(&arguments(&format!("publish --json {words}"), paths)).expect(0)
}

/// With ranges and over TLS, from a server that an authority of the user's own vouches for. Without
/// that authority nothing is received.
#[test]
fn nginx_serves_over_tls_whom_the_receiver_trusts() {
    if !Nginx::is_available() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (root, into) = (directory.path().join("root"), directory.path().join("into"));
    std::fs::create_dir(&root).unwrap();
    let content = noise(3_000_000, 3);
    std::fs::write(root.join("image.raw"), &content).unwrap();
    let certificate = Certificate::of_localhost(directory.path());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = SocketAddr::from(([127, 0, 0, 1], port));
    let _nginx = Nginx::start(Command::new("nginx"), listen, &root, Some(&certificate));
    Nginx::wait_until_it_listens(listen);
    let web = format!("--web https://localhost:{port}/");
    let published = publish(&web, &[&root.join("image.raw")]).event("published");
    let words = format!("recv {} --json -o", published["ticket"].as_str().unwrap());
    let arguments = arguments(&words, &[&into]);

    let trusting =
        |authorities: &Path| Run::of(fontana().args(&arguments).env("SSL_CERT_FILE", authorities));
    let received = trusting(&certificate.certificate).expect(0);
    assert!(std::fs::read(into.join("image.raw")).unwrap() == content);
    let mirror = received.event("mirror");
    assert!(mirror["dropped"].is_null() && mirror["useless_bytes"] == 0, "{mirror}");

    std::fs::remove_file(into.join("image.raw")).unwrap();
    let other = directory.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let refused = trusting(&Certificate::of_localhost(&other).certificate);
    assert_ne!(refused.code, Some(0), "{}", refused.stdout);
    assert!(!into.join("image.raw").exists());
    let reason = refused.event("mirror")["dropped"].to_string();
    assert!(reason.contains("certificate"), "{reason}");
}

/// A mirror that asks for a password gets it from the file of the user, for its host, and a field
/// of the command line. Without either, nothing is received.
#[test]
fn nginx_asks_for_a_password_and_gets_it() {
    if !Nginx::is_available() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (root, into) = (directory.path().join("root"), directory.path().join("into"));
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("image.raw"), noise(1_000_000, 3)).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = SocketAddr::from(([127, 0, 0, 1], port));
    let _nginx = Nginx::with_password(listen, &root, ["Aladdin", "open-sesame"], None);
    Nginx::wait_until_it_listens(listen);
    let web = format!("http://127.0.0.1:{port}/");
    let published = publish(&format!("--web {web}"), &[&root.join("image.raw")]);
    let ticket = published.event("published")["ticket"].as_str().unwrap().to_owned();
    let receive = |options: &[&str]| {
        let mut words = arguments(&format!("recv {ticket} --json"), &[]);
        words.extend(options.iter().map(|word| (*word).to_owned()));
        words.extend(["-o".to_owned(), into.to_str().unwrap().to_owned()]);
        run(&words)
    };
    let is_received = || std::fs::remove_file(into.join("image.raw")).is_ok();

    let refused = receive(&[]);
    assert_ne!(refused.code, Some(0));
    let reason = refused.event("mirror")["dropped"].to_string();
    assert!(reason.contains("401"), "{reason}");

    let netrc = directory.path().join("netrc");
    let name = netrc.to_str().unwrap();
    std::fs::write(&netrc, "machine 127.0.0.1\n  login Aladdin\n  password open-sesame\n").unwrap();
    std::fs::set_permissions(&netrc, Permissions::from_mode(0o644)).unwrap();
    let refused = receive(&["--netrc", name]).expect(7);
    assert!(refused.stderr.contains("chmod 600"), "{}", refused.stderr);
    std::fs::set_permissions(&netrc, Permissions::from_mode(0o600)).unwrap();
    receive(&["--netrc", name]).expect(0);
    assert!(is_received());
    // The ticket has chosen this host, and not the user.
    std::fs::write(&netrc, "default login Aladdin password open-sesame\n").unwrap();
    assert_ne!(receive(&["--netrc", name]).code, Some(0));
    receive(&[&web, "--netrc", name]).expect(0);
    assert!(is_received());

    let header = "Authorization: Basic QWxhZGRpbjpvcGVuLXNlc2FtZQ==";
    receive(&[&web, "--header", header]).expect(0);
    assert!(is_received());
    // A field for mirrors that are not named by the user.
    receive(&["--header", header]).expect(2);
}

/// Over TLS the password goes to the host of that name, if its certificate is one of a trusted
/// authority.
#[test]
fn a_password_is_sent_over_tls_to_whom_a_trusted_authority_names() {
    if !Nginx::is_available() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let [root, into, other] = ["root", "into", "other"].map(|name| directory.path().join(name));
    for directory in [&root, &other] {
        std::fs::create_dir(directory).unwrap();
    }
    std::fs::write(root.join("image.raw"), noise(1_000_000, 3)).unwrap();
    let [trusted, untrusted] = [directory.path(), &other].map(Certificate::of_localhost);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = SocketAddr::from(([127, 0, 0, 1], port));
    let login = ["Aladdin", "open-sesame"];
    let _nginx = Nginx::with_password(listen, &root, login, Some(&trusted));
    Nginx::wait_until_it_listens(listen);
    let web = format!("--web https://localhost:{port}/");
    let published = publish(&web, &[&root.join("image.raw")]).event("published");
    let netrc = directory.path().join("netrc");
    std::fs::write(&netrc, "machine localhost login Aladdin password open-sesame\n").unwrap();
    std::fs::set_permissions(&netrc, Permissions::from_mode(0o600)).unwrap();
    let words = format!("recv {} --json --netrc", published["ticket"].as_str().unwrap());
    let words = arguments(&words, &[&netrc, Path::new("-o"), &into]);
    let receive = |authority: &Certificate| {
        Run::of(fontana().args(&words).env("SSL_CERT_FILE", &authority.certificate))
    };
    let refused = receive(&untrusted);
    assert_ne!(refused.code, Some(0), "{}", refused.stdout);
    let reason = refused.event("mirror")["dropped"].to_string();
    assert!(reason.contains("certificate") && !reason.contains("401"), "{reason}");
    assert!(!into.join("image.raw").exists());
    receive(&trusted).expect(0);
    assert!(into.join("image.raw").exists());
}

/// As object stores do it: each file has an address that its owner has signed, and nothing is had
/// without the signature.
#[test]
fn files_come_by_addresses_of_their_own() {
    if !Nginx::is_available() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (root, into) = (directory.path().join("root"), directory.path().join("into"));
    std::fs::create_dir_all(root.join("some files")).unwrap();
    for (name, size) in [("a b", 2_000_000), ("c", 30_000)] {
        std::fs::write(root.join("some files").join(name), noise(size, 3)).unwrap();
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = SocketAddr::from(([127, 0, 0, 1], port));
    let _nginx = Nginx::with_signature(listen, &root, "5eCre7");
    Nginx::wait_until_it_listens(listen);
    let published = publish("--web http://a.example/", &[&root.join("some files")]);
    let hash = published.event("published")["manifest"].as_str().unwrap().to_owned();
    let names = ["some%20files/a%20b", "some%20files/c", &format!("{hash}.fontana")];
    let signed = names.map(|name| format!("http://{listen}/{name}?signature=5eCre7"));
    // The mirror of the ticket refuses everything.
    let ticket = format!("fontana://web/?manifest={hash}&web=http://{listen}/nothing/");
    let receive = |files: &[String]| {
        let words = format!("recv {ticket} {} --json -o", files.join(" "));
        run(&arguments(&words, &[&into]))
    };

    let received = receive(&signed).expect(0);
    assert!(std::fs::read(into.join("some files/a b")).unwrap() == noise(2_000_000, 3));
    let mirrors = received.events().into_iter().filter(|event| event["event"] == "mirror");
    let mirror = mirrors.filter(|mirror| mirror["bytes"].as_u64() > Some(0)).collect::<Vec<_>>();
    assert_eq!((mirror.len(), &mirror[0]["mirror"]), (1, &format!("http://{listen}/").into()));
    let shown = received.stdout + &received.stderr;
    assert!(!shown.contains("5eCre7"), "a secret: {shown}");

    std::fs::remove_dir_all(&into).unwrap();
    let refused = receive(&signed.clone().map(|address| address.replace("5eCre7", "other")));
    assert!(refused.code != Some(0) && refused.stdout.contains("403"), "{}", refused.stdout);
    // The address of one file is missing.
    let refused = receive(&signed[..2]);
    let lacks = format!("no address was given for {hash}.fontana");
    assert!(refused.code != Some(0) && refused.stdout.contains(&lacks), "{}", refused.stdout);
}

/// With the sandbox, as far as the kernel has one.
#[test]
fn published_files_come_from_web_servers_of_others() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, into) = (directory.path().join("some files"), directory.path().join("into"));
    std::fs::create_dir_all(tree.join("below")).unwrap();
    std::fs::write(tree.join("a"), noise(2_500_000, 1)).unwrap();
    std::fs::write(tree.join("below/b c?"), noise(40_000, 2)).unwrap();
    let servers = [Python::start(directory.path()), Python::start(directory.path())];
    let web = servers.each_ref().map(|server| format!("--web {}", server.address)).join(" ");
    let published = publish(&web, &[&tree]).event("published");
    assert_eq!((&published["files"], &published["bytes"]), (&2.into(), &2_540_000.into()));
    // Again: the manifest is there.
    assert_eq!(publish(&web, &[&tree]).event("published")["ticket"], published["ticket"]);

    let words = format!("recv {} --json -o", published["ticket"].as_str().unwrap());
    let received = run(&arguments(&words, &[&into])).expect(0);
    for name in ["a", "below/b c?"] {
        let (sent, got) = (tree.join(name), into.join("some files").join(name));
        assert!(std::fs::read(got).unwrap() == std::fs::read(sent).unwrap(), "{name}");
    }
    let mirrors: Vec<_> =
        received.events().into_iter().filter(|event| event["event"] == "mirror").collect();
    assert_eq!(mirrors.len(), 2, "{mirrors:?}");
    assert!(mirrors.iter().all(|mirror| mirror["dropped"].is_null()), "{mirrors:?}");
    assert_eq!(received.event("summary")["verified"], "digest");
    // What is there already is not requested.
    let again = run(&arguments(&words.replace("-o", "--existing replace -o"), &[&into]));
    let again = again.expect(0).events().into_iter().filter(|event| event["event"] == "mirror");
    assert_eq!(again.filter_map(|mirror| mirror["bytes"].as_u64()).sum::<u64>(), 0);
}

#[test]
fn a_mirror_is_asked_for_nothing_unless_the_user_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (directory, mirror) = (tempfile::tempdir().unwrap(), listener.local_addr().unwrap());
    let hash = "07".repeat(32);
    let ticket = format!("fontana://{}/5?manifest={hash}&web=http://{mirror}/", place());
    let words = format!("recv {ticket} -i lo --silence 1 -o");
    let silent = run(&arguments(&words, &[directory.path()])).expect(75);
    assert!(silent.stderr.contains("the ticket names 1 mirror"), "{}", silent.stderr);
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "a connection");
}

/// Answers every request by a redirect, until it is dropped. Returns where it listens, and what it
/// was asked.
fn redirecting(to: String) -> (SocketAddr, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (requests, asked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut head = String::new();
            let mut lines = BufReader::new(&stream);
            while lines.read_line(&mut head).is_ok_and(|size| size > 2) {}
            let answer = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n");
            let _ = (&stream).write_all(format!("{answer}Connection: close\r\n\r\n").as_bytes());
            if requests.send(head).is_err() {
                return;
            }
        }
    });
    (address, asked)
}

/// They get no secret, and are asked beside a sender and at public addresses alone.
#[test]
fn mirrors_of_a_sealed_ticket_are_used_if_the_group_brings_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, noise(300_000, 1)).unwrap();
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let port = elsewhere.local_addr().unwrap().port();
    let (redirecting, asked) = redirecting(format!("http://localhost:{port}/"));
    let server = Python::start(directory.path());
    let published = publish(&format!("--web {}", server.address), &[&file]).event("published");
    let ticket = published["ticket"].as_str().unwrap();
    let hash = ticket.split(['=', '&']).nth(1).unwrap();
    let (place, secret) = (place(), "c2VjcmV0IHNlY3JldCBzZQ");
    let ticket = |sender: &str| {
        let web = format!("web=http://{redirecting}/&web={}", server.address);
        format!("fontana://{sender}@{place}/5?manifest={hash}&secret={secret}&{web}")
    };
    let receive = |sender: &str, words: &str| {
        let into = directory.path().join(format!("of {sender}"));
        let words = format!("recv {} -i lo {words} -o", ticket(sender));
        (into.clone(), Running::start(&arguments(&words, &[&into])))
    };
    let (_, far) = receive("10.9.8.7", "--timeout 14");
    let (_, off) = receive("127.0.0.2", "--mirrors off --silence 1");
    let (into, complete) = receive("127.0.0.1", "--timeout 60");

    let off = off.wait().expect(75);
    assert!(!off.stderr.contains("mirror"), "{}", off.stderr);
    let complete = complete.wait().expect(0);
    assert!(std::fs::read(into.join("file")).unwrap() == noise(300_000, 1));
    for told in ["from the ticket's 2 mirrors", "is readable on the way", "leads to another host"] {
        assert!(complete.stderr.contains(told), "{told}: {}", complete.stderr);
    }
    let far = far.wait().expect(75);
    assert!(far.stderr.contains("not in the network of the ticket's sender"), "{}", far.stderr);

    let asked: String = asked.try_iter().collect();
    assert!(asked.contains(&format!("GET /{hash}.fontana ")), "{asked}");
    assert!(!asked.contains(secret) && !asked.contains("secret"), "{asked}");
    assert!(elsewhere.accept().is_err(), "a connection");
}

#[test]
fn arguments_that_contradict_mirrors_are_2() {
    let hash = "07".repeat(32);
    let web = format!("fontana://web/?manifest={hash}&web=http://127.0.0.1:9/");
    let session = format!("fontana://239.255.77.1:7701/5?manifest={hash}&web=http://127.0.0.1:9/");
    for words in [
        format!("recv {web} --one-way"),
        format!("recv {web} --list"),
        format!("recv {web} --watch"),
        format!("recv {session} --mirrors now --one-way"),
        format!("recv {session} http://127.0.0.1:9/ --one-way"),
        format!("recv {session} http://127.0.0.1:9/ --watch"),
        format!("recv {session} http://user@127.0.0.1:9/file"),
        "recv http://127.0.0.1:9/".to_owned(),
        "publish . --web ftp://127.0.0.1/".to_owned(),
        "publish .".to_owned(),
    ] {
        let refused = run(&arguments(&words, &[])).expect(2);
        assert!(!refused.stderr.is_empty(), "{words}");
    }
}

/// Mirrors of this network are asked without the proxy, and a message names the proxy.
#[test]
fn a_proxy_is_named_and_ranges_of_addresses_are_asked_without_it() {
    let directory = tempfile::tempdir().unwrap();
    let (file, into) = (directory.path().join("file"), directory.path().join("into"));
    std::fs::write(&file, noise(100_000, 1)).unwrap();
    let server = Python::start(directory.path());
    let published = publish(&format!("--web {}", server.address), &[&file]).event("published");
    let receive = |no_proxy: &str, words: &str| {
        let words = format!("recv {} {words} -o", published["ticket"].as_str().unwrap());
        let mut command = fontana();
        command.args(arguments(&words, &[&into])).env("http_proxy", "http://127.0.0.1:1");
        Run::of(command.env("no_proxy", no_proxy))
    };
    let failed = receive("10.0.0.0/8, localhost", "--timeout 2").expect(75);
    assert!(failed.stderr.contains("(through the proxy 127.0.0.1:1)"), "{}", failed.stderr);
    assert!(failed.stderr.contains("no mirror has sent the manifest"), "{}", failed.stderr);
    receive("10.0.0.0/8, 127.0.0.0/8", "--timeout 60").expect(0);
    assert!(std::fs::read(into.join("file")).unwrap() == noise(100_000, 1));
}

/// A receiver without a ticket asks a mirror again that does not listen yet.
#[test]
fn a_mirror_that_is_started_late_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let (file, into) = (directory.path().join("file"), directory.path().join("into"));
    std::fs::write(&file, noise(100_000, 1)).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mirror = format!("http://127.0.0.1:{port}/");
    let words = format!("recv {mirror} --yes --json --timeout 2 -o");
    let failed = run(&arguments(&words, &[&into])).expect(75);
    assert!(failed.stderr.contains("refused"), "{}", failed.stderr);
    let words = format!("recv {mirror} --yes --json --timeout 60 -o");
    let mut receiver = Running::start(&arguments(&words, &[&into]));
    while !receiver.line().contains("mirror_failed") {}
    let serve = format!("serve --listen 127.0.0.1:{port}");
    let server = Running::start(&arguments(&serve, &[&file]));
    receiver.wait().expect(0);
    server.signal(rustix::process::Signal::TERM);
    server.wait().expect(130);
    assert!(std::fs::read(into.join("file")).unwrap() == noise(100_000, 1));
}
