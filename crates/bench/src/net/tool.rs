//! The commands of each program. Options are those that its documentation gives for speed.

use super::hosts::{INTERFACE, address};
use super::setting::{Mode, Setting, Tool};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The group of the data of all programs.
pub(crate) const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 77, 1);
const PORT: u16 = 7701;
/// A sender without options.
pub(crate) const SEND_BY_TICKET: [&str; 2] = ["send", "--json"];
/// The group in which UFTP announces its sessions.
const ANNOUNCEMENTS: &str = "239.255.77.2";
/// UFTP's receive buffer and cache: the limit of the latter is 20 MiB.
const UFTP_BUFFER: &str = "8388608";
const UFTP_CACHE: &str = "16777216";
/// UFTP's estimate of the round-trip time, in seconds, before it has one, and its limits.
const UFTP_ROUND_TRIP: &str = "0.01:0.01:1";
/// UFTP's bytes of a packet: the default is 1 300.
const UFTP_BLOCK: &str = "1440";

/// Programs and files of a run.
pub(crate) struct Commands<'a> {
    pub(crate) tool: Tool,
    pub(crate) setting: &'a Setting,
    pub(crate) programs: &'a Programs,
    pub(crate) file: &'a Path,
    pub(crate) size: u64,
    /// Mbit/s of the programs that are told a rate.
    pub(crate) rate: u32,
    pub(crate) memory: Option<&'a str>,
    /// `--burst` of Fontana, in milliseconds.
    pub(crate) burst: Option<u32>,
    /// `--block-symbols` of Fontana.
    pub(crate) block_symbols: Option<u32>,
    /// The key with which Fontana signs, if its receivers report.
    pub(crate) key: &'a Key,
    /// The ticket that a sender prints without options.
    pub(crate) ticket: &'a str,
}

/// A secret key in a file, and the public key in the words of a ticket.
pub(crate) struct Key {
    pub(crate) file: PathBuf,
    pub(crate) public: String,
}

/// Programs that are built here.
pub(crate) struct Programs {
    pub(crate) fontana: PathBuf,
    pub(crate) flute: PathBuf,
    pub(crate) raw: PathBuf,
}

impl Commands<'_> {
    /// The sender, to receivers with these numbers.
    pub(crate) fn sender(&self, receivers: &[usize]) -> Command {
        let group = SocketAddrV4::new(GROUP, PORT).to_string();
        let here = address(0).to_string();
        let rate = self.rate.to_string();
        match self.tool {
            Tool::Fontana | Tool::FontanaReports => {
                let mut command = Command::new(&self.programs.fontana);
                command.args(["send", "--json", "--open", "--to", &format!("{group}/1")]);
                command.args(["-i", INTERFACE]);
                command.args(["--rate", &format!("{rate}M")]);
                self.limit_memory(&mut command);
                command.args(self.burst.map(|burst| format!("--burst={burst}ms")));
                command.args(self.block_symbols.map(|count| format!("--block-symbols={count}")));
                if self.tool == Tool::FontanaReports {
                    command.arg("--sign").arg(&self.key.file);
                    command.arg("--trust-reports");
                    command.args(["--receivers", &receivers.len().to_string()]);
                }
                command.arg(self.file);
                command
            }
            Tool::FontanaTicket => {
                let mut command = Command::new(&self.programs.fontana);
                command.args(SEND_BY_TICKET).args(["--rate", &format!("{rate}M")]);
                command.arg(self.file);
                command
            }
            Tool::Udpcast => {
                let mut command = Command::new("udp-sender");
                command.args(["--interface", INTERFACE, "--mcast-data-address"]);
                command.args([&GROUP.to_string(), "--nopointopoint", "--full-duplex", "--nokbd"]);
                command.args(["--no-progress", "--min-receivers", &receivers.len().to_string()]);
                command.arg("--file").arg(self.file);
                command
            }
            Tool::Uftp => {
                let mut command = Command::new("uftp");
                let identities: Vec<_> = receivers.iter().map(|&n| identity(n)).collect();
                let kilobits = (u64::from(self.rate) * 1000).to_string();
                command.args(["-I", INTERFACE, "-M", ANNOUNCEMENTS, "-P", &GROUP.to_string()]);
                command.args(["-R", &kilobits, "-B", UFTP_BUFFER, "-b", UFTP_BLOCK]);
                command.args(["-r", UFTP_ROUND_TRIP, "-H", &identities.join(",")]);
                command.arg(self.file);
                command
            }
            Tool::Flute => {
                let mut command = Command::new(&self.programs.flute);
                command.args(["send", &group, &here]).arg(self.file);
                command.args([rate, self.setting.loss.to_string()]);
                command
            }
            Tool::Ceiling | Tool::Floor => {
                let mut command = Command::new(&self.programs.raw);
                command.args(["send", &group, &here]);
                command
            }
        }
    }

    /// The receiver with this number, into its directory.
    pub(crate) fn receiver(&self, number: usize, directory: &Path) -> Command {
        let group = SocketAddrV4::new(GROUP, PORT).to_string();
        let here = address(number).to_string();
        let file = directory.join(self.file.file_name().unwrap());
        match self.tool {
            Tool::Fontana | Tool::FontanaReports => {
                let mut command = Command::new(&self.programs.fontana);
                let reports = self.tool == Tool::FontanaReports;
                let mut ticket = format!("fontana://{}@{group}/1", address(0));
                if reports {
                    ticket += &format!("?key={}&ask=7703", self.key.public);
                }
                command.args(["recv", "--json", &ticket, "-i", INTERFACE]);
                command.args((!reports).then_some("--one-way"));
                self.limit_memory(&mut command);
                command.arg("-o").arg(directory);
                command
            }
            Tool::FontanaTicket => {
                let mut command = Command::new(&self.programs.fontana);
                command.args(["recv", "--json", self.ticket, "-o"]).arg(directory);
                command
            }
            Tool::Udpcast => {
                let mut command = Command::new("udp-receiver");
                command.args(["--interface", INTERFACE, "--nokbd", "--no-progress", "--file"]);
                command.arg(file);
                command
            }
            Tool::Uftp => {
                let mut command = Command::new("uftpd");
                command.args(["-d", "-q", "-t", "-I", INTERFACE, "-M", ANNOUNCEMENTS]);
                command.args(["-B", UFTP_BUFFER, "-c", UFTP_CACHE, "-U", &identity(number)]);
                command.arg("-D").arg(directory);
                command
            }
            Tool::Flute => {
                let mut command = Command::new(&self.programs.flute);
                command.args(["receive", &group, &here]).arg(directory);
                command
            }
            Tool::Ceiling | Tool::Floor => {
                let mode = match self.setting.mode {
                    Mode::Frames => "frames",
                    Mode::Offload => "offload",
                };
                let mut command = Command::new(&self.programs.raw);
                command.args(["receive", &group, &here, &self.size.to_string(), mode]);
                command.args((self.tool == Tool::Floor).then_some(file));
                command
            }
        }
    }

    fn limit_memory(&self, command: &mut Command) {
        command.args(self.memory.into_iter().flat_map(|size| ["--memory", size]));
    }
}

/// UFTP's number of a receiver.
fn identity(number: usize) -> String {
    format!("0x{number:08X}")
}
