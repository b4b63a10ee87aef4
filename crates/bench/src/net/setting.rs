//! What is compared, and under which conditions.

use serde::Serialize;

/// A program, or a pair of programs, that sends a file to receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tool {
    Fontana,
    /// Fontana's two commands without options but the rate: a sealed ticket, and receivers that
    /// report and request what they lack.
    #[serde(rename = "fontana-ticket")]
    FontanaTicket,
    /// Fontana with a return path: receivers request what they lack.
    #[serde(rename = "fontana-reports")]
    FontanaReports,
    Udpcast,
    Uftp,
    Flute,
    /// Raw sender, and receivers that only read.
    Ceiling,
    /// Raw sender, and receivers that read, write and hash.
    Floor,
}

impl Tool {
    pub(crate) const ALL: [Self; 8] = [
        Self::Ceiling,
        Self::Floor,
        Self::Fontana,
        Self::FontanaTicket,
        Self::FontanaReports,
        Self::Udpcast,
        Self::Uftp,
        Self::Flute,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fontana => "fontana",
            Self::FontanaTicket => "fontana-ticket",
            Self::FontanaReports => "fontana-reports",
            Self::Udpcast => "udpcast",
            Self::Uftp => "uftp",
            Self::Flute => "flute",
            Self::Ceiling => "ceiling",
            Self::Floor => "floor",
        }
    }

    /// Whether it is another product's.
    pub(crate) fn is_peer(self) -> bool {
        matches!(self, Self::Udpcast | Self::Uftp | Self::Flute)
    }

    /// Whether its receivers write the file. Those of the raw sender count bytes.
    pub(crate) fn has_file(self) -> bool {
        !matches!(self, Self::Ceiling | Self::Floor)
    }

    /// Whether its sender takes a rate. The others send as fast as they can.
    pub(crate) fn is_told_a_rate(self) -> bool {
        matches!(
            self,
            Self::Fontana | Self::FontanaTicket | Self::FontanaReports | Self::Uftp | Self::Flute
        )
    }

    /// Whether its sender sends to receivers that it knows, ends when they have the file, and has
    /// to be started again for a receiver that was not there.
    pub(crate) fn counts_receivers(self) -> bool {
        matches!(self, Self::Udpcast | Self::Uftp | Self::FontanaReports)
    }
}

/// How frames cross the virtual links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// One frame for each datagram, as on Ethernet.
    Frames,
    /// GSO batches as one frame.
    Offload,
}

impl Mode {
    pub(crate) const ALL: [Self; 2] = [Self::Frames, Self::Offload];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Frames => "frames",
            Self::Offload => "offload",
        }
    }
}

/// What happens to the last receiver when the sender has sent half of the file's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Disturbance {
    /// Nothing.
    Plain,
    /// It starts then.
    Late,
    /// It is killed, and starts again.
    Restart,
}

impl Disturbance {
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::Late, Self::Restart];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Late => "late",
            Self::Restart => "restart",
        }
    }
}

/// The conditions of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) mode: Mode,
    /// Per cent of the datagrams that each receiver loses.
    pub(crate) loss: u32,
    pub(crate) receivers: usize,
    pub(crate) disturbance: Disturbance,
}

impl Setting {
    /// Whether the tool is measured: without a file nothing is missing after a disturbance.
    pub(crate) fn suits(&self, tool: Tool) -> bool {
        tool.has_file() || self.disturbance == Disturbance::Plain
    }

    /// Default rate of the tools that are told one, in Mbit/s: near what these receivers can take
    /// on two cores.
    pub(crate) fn rate(&self, tool: Tool) -> u32 {
        let per_receivers = |one, three, ten| match self.receivers {
            1 => one,
            2..=4 => three,
            _ => ten,
        };
        match (tool, self.mode) {
            (Tool::Flute | Tool::Uftp, _) => per_receivers(2_000, 1_000, 400),
            (_, Mode::Frames) => per_receivers(8_000, 2_400, 800),
            // Its sender solves no blocks without losses.
            (Tool::FontanaTicket | Tool::FontanaReports, Mode::Offload) => {
                per_receivers(6_000, 3_000, 1_000)
            }
            (_, Mode::Offload) => per_receivers(4_000, 2_400, 800),
        }
    }
}
