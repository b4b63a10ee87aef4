//! The command line's definitions.

use clap::builder::styling::Styles;
use clap::{Args, Parser, Subcommand, ValueHint};
use fontana::net::InterfaceSelector;
use fontana_console::log::{self, LogFilter};
use fontana_console::talk::Talk;
use fontana_console::units::{parse_duration, parse_rate, parse_share, parse_size};
use fontana_lab::SweepSlice;
use std::path::PathBuf;
use std::time::Duration;

/// Compute what the papers claim, and compare
///
/// Every table and figure of the papers behind the digital fountain is an experiment with an id.
#[derive(Debug, Parser)]
#[command(
    name = "fontana-lab",
    version,
    propagate_version = true,
    styles = Styles::plain(),
    after_help = "Examples:
  fontana-lab list
  fontana-lab run df.fig2
  fontana-lab run all --quick
  fontana-lab run fc.fig10 --quick --real       between hosts of this machine, in real time
  fontana-lab run all --out results             a page, figures, and rows as CSV
  fontana-lab plan all --of 16                  the cases, and how long 16 slices of them take
  fontana-lab run all --case 3 --of 16 --out results    one of 16 jobs; after all of them:
  fontana-lab merge results --out results
  fontana-lab swarm --seeds 500                 random worlds, and what must hold in all of them
  fontana-lab hostile --classes H1              what forged packets do to a receiver"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Print a trace of the program on standard error: debug, or fontana_net=debug,info
    #[arg(long, global = true, value_name = "FILTER", value_parser = log::parse)]
    pub(crate) log: Option<LogFilter>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(ListArguments),
    Plan(PlanArguments),
    Run(RunArguments),
    Merge(MergeArguments),
    Swarm(SwarmArguments),
    Hostile(HostileArguments),
    Emulate(EmulateArguments),
}

/// List the experiments
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// List the cases of a run, the longest first, with their expected processor time
///
/// Without a run: the times are those of a host on which they were measured.
#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// Experiments: an id, the part of an id before the dot, or all
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Plan a run with --quick
    #[arg(long)]
    pub(crate) quick: bool,
    /// Divide the cases into M slices, as `fontana-lab run --of M` does
    #[arg(long, value_name = "M", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(SweepSlice::MOST)))]
    pub(crate) of: u32,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// Run experiments and judge the claims
///
/// Uses all processors. The rows follow from the experiment, --quick and --seed alone; experiments
/// that measure time run one after the other, at the end.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Experiments: an id, the part of an id before the dot, or all
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Run fewer trials of the same claims
    #[arg(long)]
    pub(crate) quick: bool,
    /// Run the experiments on real hosts of this machine, over real sockets
    ///
    /// Hosts are network namespaces, with an emulator before each receiver. A run takes minutes of
    /// real time, and its figures depend on the machine and its other load. Needs Linux, iproute2
    /// and root, or instead of root: unshare --map-root-user --net fontana-lab run ID --real.
    /// `fontana-lab list` marks the experiments that have a real form; all means all of these.
    #[arg(long, conflicts_with_all = ["of", "missing"])]
    pub(crate) real: bool,
    /// Write a page, figures, and rows as CSV to this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Draw all random numbers from this seed
    #[arg(long, value_name = "S", default_value_t = fontana_lab::DEFAULT_SEED)]
    pub(crate) seed: u64,
    /// Compute slice N (from 0) of --of
    ///
    /// The default is the task's number: SLURM_ARRAY_TASK_ID, or JOB_COMPLETION_INDEX of an Indexed
    /// Job of Kubernetes.
    #[arg(long, value_name = "N", requires = "of")]
    pub(crate) case: Option<u32>,
    /// Divide the run into M slices that take about equally long, compute one, and judge nothing
    ///
    /// The rows of each case go to a file below cases in the directory of --out when it is done.
    /// All slices may have the same directory. `fontana-lab merge DIR` joins them.
    #[arg(long, value_name = "M", requires = "out",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(SweepSlice::MOST)))]
    pub(crate) of: Option<u32>,
    /// Compute only the cases that the directory of --out lacks
    ///
    /// Without --of: of all slices. The cases of a run that was killed are not computed again.
    #[arg(long, requires = "out")]
    pub(crate) missing: bool,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// Join the slices of one run, and judge the claims
#[derive(Debug, Args)]
pub(crate) struct MergeArguments {
    /// Directories of --out of the runs of the slices
    #[arg(required = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directories: Vec<PathBuf>,
    /// Write a page, figures, and rows as CSV to this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// Run the protocol in random simulated worlds, and check the invariants in all of them
///
/// Each seed draws a network with losses, faults and churn, the content and how it is sent. Uses
/// all processors; a run follows from its seed alone.
#[derive(Debug, Args)]
pub(crate) struct SwarmArguments {
    /// Run N worlds
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub(crate) seeds: u32,
    /// Give the first run this seed; the others follow
    #[arg(long, value_name = "S", default_value_t = fontana_lab::DEFAULT_SEED)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// Show what hostile packets do to a receiver, class by class
///
/// In virtual time, with the product's sender and receiver beside an attacker. Ends with exit code
/// 4 if a class breaks a bound. See docs/hostile.md.
#[derive(Debug, Args)]
pub(crate) struct HostileArguments {
    /// Send N variants of each class
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) variants: u32,
    /// Run only these classes: H1,H17
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) classes: Vec<String>,
    /// Draw the variants from this seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Send them over sockets of the loopback interface, beside a transfer
    ///
    /// Sender and receiver are processes: the program `fontana` beside this one. Classes of
    /// manifests, tables, reports and sharing are left out, and those of HTTP run, which have no
    /// virtual time.
    #[arg(long)]
    pub(crate) sockets: bool,
    /// Send so much honest content with --sockets
    #[arg(long, value_name = "SIZE", default_value = "20M", value_parser = parse_size,
          requires = "sockets")]
    pub(crate) size: u64,
    /// Announce the honest content by signed digests with --sockets (send --symbol-digests)
    #[arg(long, requires = "sockets")]
    pub(crate) symbol_digests: bool,
    /// Send the honest content at this rate with --sockets
    #[arg(long, value_name = "RATE", default_value = "200M", value_parser = parse_rate,
          requires = "sockets")]
    pub(crate) rate: u64,
    /// Give the receiver this much memory; the default is to run with 32M, then with 256M
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// Emulate a link of the simulator between two interfaces, for runs on real hosts
///
/// Takes every frame that arrives at one interface and sends it from the other one, when and if the
/// simulated link delivers it; both directions have the same parameters. Frames that keep the
/// network together (ARP, IGMP, neighbor and listener discovery) are only delayed. Needs root, and
/// the two interfaces for itself: best in a network namespace. Runs until interrupted, then prints
/// what it did.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana-lab emulate --between near far --delay 50ms
  fontana-lab emulate --between near far --loss 5% --burst 4 --seed 7
  fontana-lab emulate --between near far --rate 20M --queue 100ms --delay 20ms --jitter 2ms")]
pub(crate) struct EmulateArguments {
    /// Interfaces to emulate the link between
    #[arg(long, num_args = 2, required = true, value_names = ["A", "B"])]
    pub(crate) between: Vec<InterfaceSelector>,
    /// Lose this share of the packets
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = parse_share)]
    pub(crate) loss: f64,
    /// Lose packets in bursts of this mean length; without it, independently
    #[arg(long, value_name = "PACKETS", requires = "loss", value_parser = parse_burst)]
    pub(crate) burst: Option<f64>,
    /// Delay every packet by this time
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_duration)]
    pub(crate) delay: Duration,
    /// Add an exponentially distributed delay with this mean, without reordering
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_duration)]
    pub(crate) jitter: Duration,
    /// Carry at most this many bits per second of IP packets; without it there is no queue
    #[arg(long, value_name = "RATE", value_parser = parse_link_rate)]
    pub(crate) rate: Option<u64>,
    /// Drop packets that find a queue of this length; a time at the rate
    #[arg(long, value_name = "TIME", default_value = "100ms", requires = "rate", value_parser = parse_duration)]
    pub(crate) queue: Duration,
    /// Lose and queue every frame, also those that keep the network together
    #[arg(long)]
    pub(crate) every_frame: bool,
    /// Draw all random numbers from this seed: packets in the same order have the same losses
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

impl Command {
    pub(crate) fn talk(&self) -> Talk {
        match self {
            Self::List(arguments) => arguments.talk,
            Self::Plan(arguments) => arguments.talk,
            Self::Run(arguments) => arguments.talk,
            Self::Merge(arguments) => arguments.talk,
            Self::Swarm(arguments) => arguments.talk,
            Self::Hostile(arguments) => arguments.talk,
            Self::Emulate(arguments) => arguments.talk,
        }
    }
}
