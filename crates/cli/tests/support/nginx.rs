//! nginx, as a mirror.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A running nginx with one worker; ended when dropped.
pub struct Nginx {
    child: Child,
    _directory: TempDir,
}

/// A certificate and its key, in files.
pub struct Certificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Certificate {
    /// Signed by itself, for `localhost`; it is its own authority.
    pub fn of_localhost(directory: &Path) -> Self {
        let made =
            Self { certificate: directory.join("certificate.pem"), key: directory.join("key.pem") };
        let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
                     -subj /CN=localhost -addext subjectAltName=DNS:localhost \
                     -addext basicConstraints=critical,CA:FALSE";
        let mut openssl = Command::new("openssl");
        openssl.args(words.split_whitespace());
        openssl.arg("-out").arg(&made.certificate).arg("-keyout").arg(&made.key);
        let output = openssl.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        made
    }
}

impl Nginx {
    /// Whether nginx and openssl are installed. A skipped test is reported; with `CI=true` it
    /// fails.
    pub fn is_available() -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |name: &str| std::env::split_paths(&path).any(|at| at.join(name).is_file());
        let available = is_there("nginx") && is_there("openssl");
        if !available {
            fontana_testing::skip("needs nginx and openssl: apt-get install nginx-light openssl");
        }
        available
    }

    /// Passes what is asked for at `listen` on to another server.
    pub fn proxy(listen: SocketAddr, to: &str) -> Self {
        let location = format!("location / {{ proxy_pass {to}; }}");
        Self::launch(Command::new("nginx"), listen, None, &location)
    }

    /// Serves the files of `root` at `listen` to a user with a password, and to no other.
    pub fn with_password(
        listen: SocketAddr,
        root: &Path,
        login: [&str; 2],
        tls: Option<&Certificate>,
    ) -> Self {
        let users = root.with_extension("users");
        std::fs::write(&users, format!("{}:{{PLAIN}}{}\n", login[0], login[1])).unwrap();
        let content = format!(
            "auth_basic mirror; auth_basic_user_file '{}'; root '{}';",
            users.display(),
            root.display()
        );
        Self::launch(Command::new("nginx"), listen, tls, &content)
    }

    /// Serves the files of `root` at `listen` by addresses with this signature, and by no others.
    pub fn with_signature(listen: SocketAddr, root: &Path, signature: &str) -> Self {
        let check = format!("if ($arg_signature != '{signature}') {{ return 403; }}");
        let content = format!("{check} root '{}';", root.display());
        Self::launch(Command::new("nginx"), listen, None, &content)
    }

    /// Serves the files of `root` at `listen`. `command` starts nginx on a host:
    /// `ip netns exec HOST nginx`.
    pub fn start(
        command: Command,
        listen: SocketAddr,
        root: &Path,
        tls: Option<&Certificate>,
    ) -> Self {
        Self::launch(command, listen, tls, &format!("root '{}';", root.display()))
    }

    fn launch(
        mut command: Command,
        listen: SocketAddr,
        tls: Option<&Certificate>,
        content: &str,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {at}/{name};\n"))
            .concat();
        let (ssl, files) = tls.map_or((String::new(), String::new()), |tls| {
            let (certificate, key) = (tls.certificate.display(), tls.key.display());
            let files = format!("ssl_certificate {certificate}; ssl_certificate_key {key};");
            (" ssl".to_owned(), files)
        });
        let configuration = directory.path().join("nginx.conf");
        let text = format!(
            "daemon off; master_process off; pid {at}/pid; error_log {at}/errors crit;\n\
             events {{}}\nhttp {{ access_log off;\n{temporary}\
             server {{ listen {listen}{ssl}; {files} {content} }} }}\n"
        );
        std::fs::write(&configuration, text).unwrap();
        command.arg("-p").arg(directory.path()).arg("-c").arg(&configuration);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().unwrap(), _directory: directory }
    }

    /// Waits until a server of this host listens.
    pub fn wait_until_it_listens(listen: SocketAddr) {
        for _ in 0..500 {
            if TcpStream::connect(listen).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("nginx does not listen at {listen}");
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
