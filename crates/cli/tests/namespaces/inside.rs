//! A mirror on the internet that wants the receiver to send requests to servers inside of the
//! receiver's network.

use crate::bench::Bench;
use crate::scene::Scene;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

const PORT: u16 = 8088;

/// A receiver (host 0) with a mirror outside (host 1), and a server inside (host 2).
struct Network {
    scene: Scene,
}

impl Network {
    fn new() -> Option<Self> {
        let scene = Scene::new(3)?;
        for (host, command) in [
            (1, "ip addr add 8.8.4.4/32 dev eth0"),
            (0, "ip route add 8.8.4.4/32 dev eth0"),
            (1, "ip route replace 10.77.0.1/32 dev eth0"),
        ] {
            let mut words = command.split(' ');
            let mut command = scene.bench.command(host, words.next().unwrap());
            assert!(command.args(words).status().unwrap().success());
        }
        // A copy, as a host may have no such file, or a link to nowhere.
        let copy = Command::new("cp").args(["-a", "/etc"]).arg(scene.path("etc")).status().unwrap();
        assert!(copy.success());
        let _ = std::fs::remove_file(scene.path("etc/resolv.conf"));
        std::fs::write(scene.path("etc/resolv.conf"), "nameserver 8.8.4.4\n").unwrap();
        std::fs::write(scene.path("outside.py"), include_str!("outside.py")).unwrap();
        Some(Self { scene })
    }

    /// Receives from a mirror that behaves in this way. Returns what it was asked, and what was
    /// asked inside.
    fn receive(&self, mode: &str, proxy: Option<&str>) -> (String, String) {
        let inside = format!("{}:{PORT}", Bench::address(2));
        let mut python = self.scene.bench.command(1, "python3");
        python.arg(self.scene.path("outside.py")).args([mode, &inside]);
        let mut outside = start(python);
        outside.wait_for_line("ready");
        let script = "import http.server as h, sys\n\
                      class H(h.BaseHTTPRequestHandler):\n\
                      \tdef do_GET(s): print(s.path, flush=True); s.send_error(404)\n\
                      \tdef log_message(s, *a): pass\n\
                      s = h.HTTPServer((sys.argv[1], int(sys.argv[2])), H); print('ready', flush=True)\n\
                      s.serve_forever()";
        let mut python = self.scene.bench.command(2, "python3");
        python.args(["-c", script, &Bench::address(2), &PORT.to_string()]);
        let mut server = start(python);
        server.wait_for_line("ready");
        let mut command = self.scene.bench.command(0, "unshare");
        let script = "mount --bind \"$1\" /etc && shift && exec \"$@\"";
        command.args(["-m", "sh", "-c", script, "sh"]).arg(self.scene.path("etc"));
        command.args([env!("CARGO_BIN_EXE_fontana"), "recv", "--timeout", "8"]);
        let hash = "7".repeat(64);
        command.arg(format!("fontana://web/?manifest={hash}&web=http://mirror.test:{PORT}/"));
        command.arg("-o").arg(self.scene.path(mode)).envs(proxy.map(|proxy| ("http_proxy", proxy)));
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_ne!(output.status.code(), Some(0), "{text}");
        println!("{mode}: {text}");
        (outside.end(), server.end())
    }
}

/// A running script, and its lines.
struct Script(Child, BufReader<ChildStdout>);

fn start(mut command: Command) -> Script {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    Script(child, output)
}

impl Script {
    fn wait_for_line(&mut self, line: &str) {
        let mut read = String::new();
        self.1.read_line(&mut read).unwrap();
        assert_eq!(read.trim(), line);
    }

    /// Ends it. Returns what it wrote.
    fn end(mut self) -> String {
        let _ = self.0.kill();
        let mut text = String::new();
        self.1.read_to_string(&mut text).unwrap();
        let _ = self.0.wait();
        text
    }
}

#[test]
fn no_mirror_outside_makes_a_receiver_send_requests_inside() {
    let Some(network) = Network::new() else { return };
    let proxy = format!("http://8.8.4.4:{PORT}");
    for (mode, proxy) in [
        // A redirect of a mirror whose name has a public and a private address.
        ("mixed", None),
        // A redirect to a name that is public at first.
        ("redirect", None),
        // The mirror's own name, after it has asked to come again.
        ("rebinds", None),
        // The proxy would go there.
        ("proxy", Some(proxy.as_str())),
    ] {
        let (outside, inside) = network.receive(mode, proxy);
        assert!(outside.contains("GET "), "{mode}: it was not asked: {outside}");
        assert_eq!(inside, "", "{mode}: {outside}");
    }
}
