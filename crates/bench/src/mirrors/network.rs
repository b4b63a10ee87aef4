//! Web servers on hosts of this computer, each behind a token bucket.

use crate::net::hosts::{INTERFACE, address, command};
use fontana_net::{Namespace, NamespaceError, Switch};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// What every `fontana serve` has.
const HEAD: &str = "fontana.head";

/// A client, and servers on a switch. The client is host 0.
pub(super) struct WebNetwork {
    switch: Switch,
    client: Namespace,
    servers: Vec<Namespace>,
}

/// A running web server; ended when dropped.
pub(super) struct Server {
    child: Child,
    url: String,
    /// A file that it has.
    file: String,
}

impl Server {
    /// The address of its directory.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn port(number: usize) -> String {
    format!("port{number}")
}

fn url(number: usize) -> String {
    format!("http://{}/", address(number + 1))
}

impl WebNetwork {
    /// Hosts for a server of each of these rates, in Mbit/s.
    ///
    /// # Errors
    /// What is missing, or failed.
    pub(super) fn new(rates: &[u32]) -> Result<Self, String> {
        let text = |error: NamespaceError| error.to_string();
        let (switch, client) = (Switch::new().map_err(text)?, Namespace::silent().map_err(text)?);
        let servers = rates.iter().map(|_| Namespace::silent()).collect::<Result<_, _>>();
        let network = Self { switch, client, servers: servers.map_err(text)? };
        let hosts = std::iter::once(&network.client).chain(&network.servers);
        for (number, host) in hosts.enumerate() {
            network.switch.connect(&port(number), host).map_err(text)?;
            host.ip(&format!(
                "link set lo up\n\
                 addr add {}/24 brd + dev {INTERFACE}\n\
                 link set {INTERFACE} up\n",
                address(number)
            ))
            .map_err(text)?;
        }
        for (host, rate) in network.servers.iter().zip(rates) {
            // A bucket passes whole batches of segments, or none.
            command(host, "ethtool", &["-K", INTERFACE, "tso", "off", "gso", "off"], "")?;
            let line = format!(
                "qdisc add dev {INTERFACE} root tbf rate {rate}mbit burst 15kb latency 100ms"
            );
            command(host, "tc", &line.split(' ').collect::<Vec<_>>(), "")?;
        }
        Ok(network)
    }

    pub(super) fn client(&self) -> &Namespace {
        &self.client
    }

    /// The address of each server.
    pub(super) fn urls(&self) -> impl Iterator<Item = String> + use<> {
        (0..self.servers.len()).map(url)
    }

    /// Starts nginx on a server's host, to serve `root`, which has `file`; its configuration is
    /// written into `directory`.
    ///
    /// # Errors
    /// It cannot be started, or does not serve.
    pub(super) fn serve(
        &self,
        number: usize,
        root: &Path,
        file: &str,
        directory: &Path,
    ) -> Result<Server, String> {
        let (root, at) = (root.display(), directory.display());
        let configuration = directory.join(format!("nginx{number}.conf"));
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {at}/{name}{number};"))
            .join("\n  ");
        let text = format!(
            "daemon off;\nmaster_process off;\npid {at}/nginx{number}.pid;\nerror_log stderr crit;\n\
             events {{}}\nhttp {{\n  access_log off;\n  {paths}\n  \
             server {{ listen {}:80; root {root}; }}\n}}\n",
            address(number + 1)
        );
        fs::write(&configuration, text).map_err(|error| error.to_string())?;
        let mut nginx = Command::new("nginx");
        nginx.arg("-p").arg(directory).arg("-c").arg(&configuration);
        self.start(number, nginx, url(number), file)
    }

    /// Starts `fontana serve` on a server's host. `command` names the content.
    ///
    /// # Errors
    /// It cannot be started, or does not serve.
    pub(super) fn serve_fresh(
        &self,
        number: usize,
        mut command: Command,
    ) -> Result<Server, String> {
        command.args(["--quiet", "--listen", &format!("{}:80", address(number + 1))]);
        self.start(number, command, url(number), HEAD)
    }

    /// Starts a web server, and waits until it sends a file that it has.
    fn start(
        &self,
        number: usize,
        mut command: Command,
        url: String,
        file: &str,
    ) -> Result<Server, String> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let host = &self.servers[number];
        let child = host.within(|| command.spawn()).map_err(|error| error.to_string())?;
        let child = child.map_err(|error| format!("{command:?}: {error}"))?;
        let server = Server { child, url, file: file.to_owned() };
        for _ in 0..500 {
            if self.rate_of(&server, 1).is_ok() {
                return Ok(server);
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err(format!("nothing serves {}", server.url))
    }

    /// Bits per second that `curl` gets of the first bytes of a server's file.
    ///
    /// # Errors
    /// It gets none.
    pub(super) fn rate_of(&self, server: &Server, bytes: u64) -> Result<f64, String> {
        let (range, url) = (format!("0-{}", bytes - 1), format!("{}{}", server.url, server.file));
        let words =
            ["-sf", "-o", "/dev/null", "-r", &range, "-w", "%{speed_download}", url.as_str()];
        let said = command(&self.client, "curl", &words, "")?;
        said.trim().parse::<f64>().map(|bytes| bytes * 8.0).map_err(|_| said)
    }

    /// Takes the port of a server up or down.
    ///
    /// # Errors
    /// `ip` fails.
    pub(super) fn set_up(&self, number: usize, is_up: bool) -> Result<(), String> {
        let state = if is_up { "up" } else { "down" };
        let line = format!("link set {} {state}", port(number + 1));
        self.switch.namespace().ip(&line).map_err(|error| error.to_string())
    }
}
