//! `fontana lab`.

use super::Talk;
use crate::units::{parse_duration, parse_rate, parse_share};
use clap::{Args, Subcommand, ValueHint};
use fontana::net::InterfaceSelector;
use std::path::PathBuf;
use std::time::Duration;

/// Compute what the papers claim, and compare
///
/// Every table and figure of the papers behind the digital fountain is an experiment with an id.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana lab list
  fontana lab run df.fig2
  fontana lab run all --quick
  fontana lab run fc.fig10 --quick --real       between hosts of this machine, in real time
  fontana lab run all --out results             a page, figures, and rows as CSV
  fontana lab run all --case 3 --of 16 --out part3      one of 16 jobs; then:
  fontana lab merge part* --out results
  fontana lab swarm --seeds 500                 random worlds, and what must hold in all of them")]
pub(crate) struct LabArguments {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    List(LabListArguments),
    Run(LabRunArguments),
    Merge(LabMergeArguments),
    Swarm(LabSwarmArguments),
    Relay(LabRelayArguments),
}

/// List the experiments
#[derive(Debug, Args)]
pub(crate) struct LabListArguments {
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// Run experiments and judge the claims
///
/// Uses all processors. The rows follow from the experiment, --quick and --seed alone; experiments
/// that measure time run one after the other, at the end.
#[derive(Debug, Args)]
pub(crate) struct LabRunArguments {
    /// Which: an id, the part of an id before the dot, or all
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Fewer trials, the same claims
    #[arg(long)]
    pub(crate) quick: bool,
    /// Run what the papers ran on real hosts between hosts of this machine, over real sockets
    ///
    /// Hosts are network namespaces, with a relay before each receiver. In real time: minutes, and
    /// figures that follow from the machine and what else it does. Takes Linux, iproute2 and root,
    /// or instead of root: unshare --map-root-user --net fontana lab run ID --real. Not every
    /// experiment has a real form; `fontana lab list` marks those that have. All means all of
    /// these.
    #[arg(long, conflicts_with = "case")]
    pub(crate) real: bool,
    /// Write a page, figures, and rows as CSV to this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Where all randomness comes from
    #[arg(long, value_name = "S", default_value_t = fontana_lab::DEFAULT_SEED)]
    pub(crate) seed: u64,
    /// Compute slice N of M only, from 0; nothing is judged
    #[arg(long, value_name = "N", requires = "of", requires = "out")]
    pub(crate) case: Option<u32>,
    /// How many slices there are
    #[arg(long, value_name = "M", requires = "case")]
    pub(crate) of: Option<u32>,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// Join the slices of one run, and judge the claims
#[derive(Debug, Args)]
pub(crate) struct LabMergeArguments {
    /// What the runs of the slices have written
    #[arg(required = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directories: Vec<PathBuf>,
    /// Write a page, figures, and rows as CSV to this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// Run the protocol in random simulated worlds, and check what must hold in all of them
///
/// Each seed draws a network with losses, faults and churn, the content and how it is sent. Uses
/// all processors; a run follows from its seed alone.
#[derive(Debug, Args)]
pub(crate) struct LabSwarmArguments {
    /// How many runs
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub(crate) seeds: u32,
    /// Seed of the first run; the others follow
    #[arg(long, value_name = "S", default_value_t = fontana_lab::DEFAULT_SEED)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// A link of the simulator between two interfaces, for runs on real hosts
///
/// Takes every frame that comes to one interface and sends it out of the other one, when and if the
/// link says that it arrives: the same link in both directions. Frames that keep the network
/// together (ARP, IGMP, neighbor and listener discovery) are only delayed. Needs root, and the two
/// interfaces for itself: best in a network namespace. Ends when it is interrupted, and says what
/// it did.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana lab relay --between near far --delay 50ms
  fontana lab relay --between near far --loss 5% --burst 4 --seed 7
  fontana lab relay --between near far --rate 20M --queue 100ms --delay 20ms --jitter 2ms")]
pub(crate) struct LabRelayArguments {
    /// The two interfaces
    #[arg(long, num_args = 2, required = true, value_names = ["A", "B"])]
    pub(crate) between: Vec<InterfaceSelector>,
    /// Share of packets that are lost
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = parse_share)]
    pub(crate) loss: f64,
    /// Losses come in bursts of so many packets on average; without it, each by itself
    #[arg(long, value_name = "PACKETS", requires = "loss", value_parser = parse_burst)]
    pub(crate) burst: Option<f64>,
    /// Delay of every packet
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_duration)]
    pub(crate) delay: Duration,
    /// Mean of an exponentially distributed delay on top, which reorders nothing
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_duration)]
    pub(crate) jitter: Duration,
    /// Rate of IP packets, in bits per second; without it there is no queue
    #[arg(long, value_name = "RATE", value_parser = parse_link_rate)]
    pub(crate) rate: Option<u64>,
    /// How long a full queue takes at the rate; what finds it full is dropped
    #[arg(long, value_name = "TIME", default_value = "100ms", requires = "rate", value_parser = parse_duration)]
    pub(crate) queue: Duration,
    /// Lose and queue every frame, also those that keep the network together
    #[arg(long)]
    pub(crate) every_frame: bool,
    /// Where all randomness comes from: packets in the same order are lost alike
    #[arg(long, value_name = "S", default_value_t = fontana_lab::DEFAULT_SEED)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

fn parse_burst(text: &str) -> Result<f64, String> {
    let burst = text.parse::<f64>().ok().filter(|burst| burst.is_finite() && *burst >= 1.0);
    burst.ok_or_else(|| "a burst is 1 packet or more on average".to_owned())
}

fn parse_link_rate(text: &str) -> Result<u64, String> {
    let rate = parse_rate(text)?;
    if rate < 8 { Err("a link carries 8 bits per second at least".to_owned()) } else { Ok(rate) }
}

impl LabArguments {
    pub(crate) fn talk(&self) -> Talk {
        match &self.command {
            LabCommand::List(arguments) => arguments.talk,
            LabCommand::Run(arguments) => arguments.talk,
            LabCommand::Merge(arguments) => arguments.talk,
            LabCommand::Swarm(arguments) => arguments.talk,
            LabCommand::Relay(arguments) => arguments.talk,
        }
    }
}
