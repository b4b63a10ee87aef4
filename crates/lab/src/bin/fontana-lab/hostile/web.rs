//! A server and a receiver of HTTP in processes of their own, and hostile clients or mirrors.

use super::not_run;
use super::process::{Process, count, peak_memory, program};
use super::sockets::{Stage, same};
use super::transfer::Transfer;
use fontana::net::ThreadError;
use fontana::net::thread::spawn_scoped;
use fontana_console::failure::Failure;
use fontana_lab::hostile::{Clients, Mirror, Step, WebAttack};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

/// Hostile clients, and hostile mirrors, at the same time.
const HOSTS: u32 = 8;
/// Receptions beside hostile mirrors, at most.
const RECEPTIONS: u32 = 20;
/// Time that a hostile host waits for the other end.
const PATIENCE: Duration = Duration::from_millis(50);
/// Time that a hostile mirror waits for the request, and for the honest one's answer.
const REQUEST_TIME: Duration = Duration::from_secs(2);
/// Bytes of an honest answer that a hostile mirror reads.
const MAX_ANSWER: u64 = 4 << 20;
/// Time between two looks.
const TICK: Duration = Duration::from_millis(5);

/// What a server offers.
struct Offer {
    ticket: String,
    manifest: String,
    address: SocketAddr,
}

impl Offer {
    /// What the server's ticket says.
    fn of(ticket: &str) -> Option<Self> {
        let field =
            |name: &str, end: char| Some(ticket.split_once(name)?.1.split(end).next()?.to_owned());
        let address = field("web=http://", '/')?.parse().ok()?;
        Some(Self { ticket: ticket.into(), manifest: field("manifest=", '&')?, address })
    }
}

impl Stage {
    /// Serves the file to a receiver, both with this much memory, beside so many hostile requests
    /// or answers that follow from a seed.
    pub(super) fn transfer_over_http(
        &self,
        attack: Option<(WebAttack, u32, u64)>,
        memory: u64,
    ) -> Result<Transfer, Failure> {
        self.serve(attack, memory).map_err(|error| not_run(&error))
    }

    fn serve(&self, attack: Option<(WebAttack, u32, u64)>, memory: u64) -> io::Result<Transfer> {
        let mut command = program()?;
        command.args(["serve", "--listen", "127.0.0.1:0", "--json"]);
        command.args(["--memory", &memory.to_string()]).arg(&self.file);
        let mut server = Process::start(command)?;
        let offer = server.event_with("ticket")?["ticket"].as_str().and_then(Offer::of);
        let offer = offer.ok_or_else(|| io::Error::other("the server has no ticket"))?;
        let mut transfer = Transfer { is_exact: true, ..Transfer::default() };
        let (process, stdout) = server.parts();
        let stderr = process.stderr.take();
        let log_bytes = scope(|scope| {
            let outputs = [
                spawn_scoped(scope, "output", || count(Some(stdout))),
                spawn_scoped(scope, "errors", || count(stderr)),
            ];
            let result = match attack {
                Some((WebAttack::Answers, variants, seed)) => {
                    self.beside_mirrors(&offer, (variants, seed), memory, &mut transfer)
                }
                Some(attack) => self.beside_clients(&offer, attack, memory, &mut transfer),
                None => self.receive(&offer, &[], memory, &mut transfer),
            };
            transfer.memory_max = transfer.memory_max.max(peak_memory(process.id()));
            if process.try_wait()?.is_some() {
                transfer.exit_code = None;
            }
            process.kill()?;
            result?;
            let mut bytes = 0;
            for output in outputs {
                bytes += output.map_err(|ThreadError(error)| error)?.join().unwrap_or_default();
            }
            Ok::<u64, io::Error>(bytes)
        })?;
        transfer.log_bytes = transfer.log_bytes.max(log_bytes);
        Ok(transfer)
    }

    /// A reception, whose worst figures count.
    fn receive(
        &self,
        offer: &Offer,
        mirrors: &[SocketAddr],
        memory: u64,
        transfer: &mut Transfer,
    ) -> io::Result<()> {
        let into = self.directory.path().join("into");
        let mut command = program()?;
        command.args(["recv", &offer.ticket]);
        command.args(mirrors.iter().map(|mirror| format!("http://{mirror}/")));
        command.args(["--json", "--log", "info", "--timeout", "50"]);
        command.args(["--memory", &memory.to_string()]).arg("-o").arg(&into);
        let mut one = Transfer::default();
        Process::start(command)?.watch(&mut one)?;
        let received = into.join("noise");
        transfer.is_exact &= one.exit_code == Some(0) && same(&self.file, &received)?;
        transfer.exit_code = one.exit_code;
        transfer.error = transfer.error.take().or(one.error);
        transfer.memory_max = transfer.memory_max.max(one.memory_max);
        transfer.log_bytes = transfer.log_bytes.max(one.log_bytes);
        transfer.seconds = transfer.seconds.max(one.seconds);
        if into.exists() {
            fs::remove_dir_all(&into)?;
        }
        Ok(())
    }

    /// Receives when half of the hostile requests have been sent.
    fn beside_clients(
        &self,
        offer: &Offer,
        (attack, variants, seed): (WebAttack, u32, u64),
        memory: u64,
        transfer: &mut Transfer,
    ) -> io::Result<()> {
        let sent = AtomicU32::new(0);
        scope(|scope| {
            for host in 0..HOSTS {
                let seed = seed.wrapping_mul(u64::from(HOSTS)).wrapping_add(host.into());
                let mut clients = Clients::new(seed, &offer.manifest, "noise");
                let sent = &sent;
                spawn_scoped(scope, "client", move || {
                    while sent.fetch_add(1, Ordering::Relaxed) < variants {
                        let steps = clients.next_client(attack);
                        // The server may refuse it, and end the connection before its end.
                        let _ = TcpStream::connect_timeout(&offer.address, REQUEST_TIME)
                            .and_then(|stream| act(stream, &steps));
                    }
                })
                .map_err(|ThreadError(error)| error)?;
            }
            while sent.load(Ordering::Relaxed) < variants / 2 {
                std::thread::sleep(TICK);
            }
            self.receive(offer, &[], memory, transfer)
        })?;
        transfer.packets = u64::from(sent.load(Ordering::Relaxed).min(variants));
        Ok(())
    }

    /// Receives again and again beside hostile mirrors, until they have given so many answers.
    fn beside_mirrors(
        &self,
        offer: &Offer,
        (variants, seed): (u32, u64),
        memory: u64,
        transfer: &mut Transfer,
    ) -> io::Result<()> {
        let (answers, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
        scope(|scope| {
            let mut addresses = Vec::new();
            for host in 0..HOSTS {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                listener.set_nonblocking(true)?;
                addresses.push(listener.local_addr()?);
                let seed = seed.wrapping_mul(u64::from(HOSTS)).wrapping_add(host.into());
                let honest = format!("http://{}", offer.address);
                let mut mirror = Mirror::new(seed, &honest);
                let (answers, is_over) = (&answers, &is_over);
                spawn_scoped(scope, "mirror", move || {
                    while !is_over.load(Ordering::Relaxed) {
                        match listener.accept() {
                            Ok((stream, _)) => {
                                answers.fetch_add(1, Ordering::Relaxed);
                                // The receiver may leave.
                                let _ = answer(stream, offer.address, &mut mirror);
                            }
                            Err(_) => std::thread::sleep(TICK),
                        }
                    }
                })
                .map_err(|ThreadError(error)| error)?;
            }
            let mut receptions = 0;
            let result = loop {
                let result = self.receive(offer, &addresses, memory, transfer);
                receptions += 1;
                let is_enough = answers.load(Ordering::Relaxed) >= variants;
                if result.is_err() || is_enough || receptions == RECEPTIONS {
                    break result;
                }
            };
            is_over.store(true, Ordering::Relaxed);
            result
        })?;
        transfer.packets = answers.load(Ordering::Relaxed).into();
        Ok(())
    }
}

/// Does the steps of a host, and closes the connection.
fn act(mut stream: TcpStream, steps: &[Step]) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(REQUEST_TIME))?;
    for step in steps {
        match step {
            Step::Send(bytes) => stream.write_all(bytes)?,
            Step::Repeat(bytes, most) => {
                let times = most.checked_div(bytes.len() as u64).unwrap_or_default();
                for _ in 0..times {
                    stream.write_all(bytes)?;
                }
            }
            Step::Wait(time) => std::thread::sleep(*time),
            Step::Read(most) => {
                let mut buffer = [0; 4096];
                let (mut read, until) = (0, Instant::now() + REQUEST_TIME);
                while read < *most && Instant::now() < until {
                    let count = stream.read(&mut buffer)?;
                    if count == 0 {
                        break;
                    }
                    read += count as u64;
                }
            }
        }
    }
    Ok(())
}

/// Asks the honest mirror what the receiver has asked, and answers something else.
fn answer(mut stream: TcpStream, honest: SocketAddr, mirror: &mut Mirror) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(REQUEST_TIME))?;
    let (mut head, mut buffer) = (Vec::new(), [0; 4096]);
    while !head.ends_with(b"\r\n\r\n") {
        let count = stream.read(&mut buffer)?;
        if count == 0 || head.len() > buffer.len() {
            return Ok(());
        }
        head.extend_from_slice(buffer.get(..count).unwrap_or_default());
    }
    let head = String::from_utf8_lossy(&head).replacen("\r\n", "\r\nConnection: close\r\n", 1);
    let mut server = TcpStream::connect_timeout(&honest, REQUEST_TIME)?;
    server.set_read_timeout(Some(REQUEST_TIME))?;
    server.write_all(head.as_bytes())?;
    let mut bytes = Vec::new();
    server.take(MAX_ANSWER).read_to_end(&mut bytes)?;
    act(stream, &mirror.next_answer(&bytes))
}
