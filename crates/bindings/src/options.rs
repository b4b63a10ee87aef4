//! Options of sessions, as numbers and texts. What is not given has the library's default.

use crate::failure::Failure;
use fontana::net::InterfaceSelector;
use fontana::wire::{ChannelGroups, MAX_CHANNELS, Ticket, Tsi};
use fontana::{
    Acceptance, Addressing, Ordering, Rate, ReceiveFormat, Receiver, ReceiverBuilder, SendMode,
    Sender, SenderBuilder,
};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Repair symbols per thousand of a file that is sent part by part, as of `--order sequential`.
const REPAIR_OF_PARTS: u32 = 100;

/// Options of a sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendOptions<'a> {
    /// The group and port, or a host and port.
    pub to: Option<&'a str>,
    /// The interface: its name, address or network.
    pub interface: Option<&'a str>,
    /// Bits per second, headers included.
    pub rate: Option<u64>,
    /// TTL or hop limit of multicast.
    pub hop_limit: Option<u8>,
    /// The name that receivers give a single file.
    pub name: Option<&'a str>,
    /// Send everything once, and this many repair symbols per thousand source symbols. `None`:
    /// send until the session is stopped.
    pub push: Option<u32>,
    /// The transport session identifier.
    pub tsi: Option<u64>,
    /// Bytes of memory at most.
    pub memory: Option<usize>,
    /// The parts of the only file, which are sent one after the other. Empty: all of it at once.
    pub parts: &'a [(u64, u64)],
}

impl SendOptions<'_> {
    /// The builder of a sender of files and directories.
    ///
    /// # Errors
    /// A text is not what it should be.
    pub fn builder(
        &self,
        paths: impl IntoIterator<Item = PathBuf>,
    ) -> Result<SenderBuilder, Failure> {
        let mut addressing = addressing(self.to, Addressing::default())?;
        addressing.interfaces = interfaces(self.interface)?;
        addressing.hop_limit = self.hop_limit.unwrap_or(addressing.hop_limit);
        let mut builder = Sender::builder(paths).addressing(addressing).tsi(self.tsi.map(Tsi));
        if let Some(rate) = self.rate {
            builder = builder.rate(rate_of(rate)?);
        }
        if let Some(name) = self.name {
            builder = builder.name(name);
        }
        if let Some(repair_permille) = self.push {
            builder = builder.mode(SendMode::Push { repair_permille });
        }
        if let Some(memory) = self.memory {
            builder = builder.memory(memory);
        }
        if !self.parts.is_empty() {
            let parts = self.parts.iter().map(|&(start, end)| start..end);
            let ordering = Ordering::Sequential { repair_permille: REPAIR_OF_PARTS };
            builder = builder.parts(parts).ordering(ordering);
        }
        Ok(builder)
    }
}

/// Options of a receiver.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiveOptions<'a> {
    /// The ticket that the sender shows. `None`: the first session on the group.
    pub ticket: Option<&'a str>,
    /// The group and port, without a ticket.
    pub group: Option<&'a str>,
    /// The interface: its name, address or network.
    pub interface: Option<&'a str>,
    /// Whether files that exist are replaced.
    pub overwrite: bool,
    /// Whether what files contain already is not received again.
    pub skip_existing: bool,
    /// Give up after this time.
    pub timeout: Option<Duration>,
    /// Give up if nothing has arrived for this long. Zero: never.
    pub silence: Option<Duration>,
    /// Bytes that a session may have at most.
    pub max_bytes: Option<u64>,
    /// Bytes of memory at most.
    pub memory: Option<usize>,
}

impl ReceiveOptions<'_> {
    /// The builder of a receiver.
    ///
    /// # Errors
    /// A text is not what it should be.
    pub fn builder(&self) -> Result<ReceiverBuilder, Failure> {
        let ticket: Option<Ticket> =
            self.ticket.map(|ticket| parsed("ticket", ticket)).transpose()?;
        // As many channels as the head declares, on the groups after the first one.
        let all = Addressing {
            channels: ChannelGroups::Consecutive(MAX_CHANNELS),
            ..Addressing::default()
        };
        let (mut builder, mut format, mut addressing) = match &ticket {
            Some(ticket) => (
                Receiver::from_ticket(ticket),
                ReceiveFormat::from_ticket(ticket),
                Addressing::of_ticket(ticket),
            ),
            None => (Receiver::builder(), ReceiveFormat::default(), addressing(self.group, all)?),
        };
        addressing.interfaces = interfaces(self.interface)?;
        match &mut format {
            ReceiveFormat::Fontana(fontana) => {
                fontana.acceptance = Acceptance::Automatic;
                fontana.skip_existing = self.skip_existing;
            }
            ReceiveFormat::Flute(flute) => flute.skip_existing = self.skip_existing,
            _ => {}
        }
        builder = builder
            .addressing(addressing)
            .format(format)
            .overwrite(self.overwrite)
            .timeout(self.timeout);
        if let Some(silence) = self.silence {
            builder = builder.give_up_after_silence((!silence.is_zero()).then_some(silence));
        }
        if let Some(bytes) = self.max_bytes {
            builder = builder.max_bytes(bytes);
        }
        if let Some(memory) = self.memory {
            builder = builder.memory(memory);
        }
        Ok(builder)
    }
}

fn addressing(to: Option<&str>, otherwise: Addressing) -> Result<Addressing, Failure> {
    let to = to.map(|to| parsed("group", to)).transpose()?;
    Ok(to.map_or(otherwise.clone(), |to| Addressing { to: vec![to], ..otherwise }))
}

fn interfaces(name: Option<&str>) -> Result<Vec<InterfaceSelector>, Failure> {
    let selector = name.map(|name| parsed("interface", name)).transpose()?;
    Ok(selector.into_iter().collect())
}

fn rate_of(bits: u64) -> Result<Rate, Failure> {
    match bits {
        0 => Err(Failure::argument("rate", "0 bits per second send nothing")),
        _ => Ok(Rate::bits_per_second(bits)),
    }
}

fn parsed<T: FromStr<Err: fmt::Display>>(name: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error| Failure::argument(name, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana::{FluteFormat, Format, Outcome};

    #[test]
    fn a_ticket_says_the_format_of_its_session() {
        let port = 20_000 + (std::process::id() % 20_000) as u16;
        let to = format!("239.255.94.7:{port}");
        let options = SendOptions { to: Some(&to), interface: Some("lo"), ..Default::default() };
        let [sent, into] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let file = sent.path().join("file");
        std::fs::write(&file, [7; 5_000]).unwrap();
        let sender = options.builder([file]).unwrap();
        let sender = sender.format(Format::Flute(FluteFormat::default())).start().unwrap();
        let ticket = sender.description().ticket.to_string();
        assert!(ticket.ends_with("?format=flute"), "{ticket}");
        let timeout = Some(Duration::from_secs(60));
        let (ticket, interface) = (Some(&*ticket), Some("lo"));
        let options = ReceiveOptions { ticket, interface, timeout, ..Default::default() };
        let receiver = options.builder().unwrap().into_dir(into.path()).start().unwrap();
        assert_eq!(receiver.join().unwrap().outcome, Outcome::Complete);
        assert_eq!(std::fs::read(into.path().join("file")).unwrap(), [7; 5_000]);
        sender.stop();
    }

    #[test]
    fn a_wrong_text_is_an_error_that_names_it() {
        let wrong = ReceiveOptions { ticket: Some("fontana:/x"), ..Default::default() };
        let failure = wrong.builder().unwrap_err();
        assert!(failure.message.starts_with("ticket: "), "{failure}");
        assert_eq!((failure.kind, failure.outcome), (None, Outcome::Usage));
        let wrong = SendOptions { rate: Some(0), ..Default::default() };
        assert_eq!(wrong.builder([]).unwrap_err().kind_name(), "Argument");
    }
}
