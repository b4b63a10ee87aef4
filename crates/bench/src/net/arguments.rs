//! The command line of `net`.

use super::setting::{Disturbance, Mode, Setting, Tool};
use crate::numbers::within;
use std::path::PathBuf;

pub(crate) const USAGE: &str = "\
usage: fontana-bench net [--quick] [--smoke] [--peers] [--json]

  net     transfers between network namespaces, as root, beside a raw sender and receiver
          restrict it: [--tool NAME,..] [--mode frames|offload] [--receivers N,..]
                       [--loss PERCENT,..] [--scenario plain|late|restart]
          change it:   [--size MIB] [--repetitions N] [--rate MBIT] [--memory SIZE]
                       [--burst MS] [--block-symbols N] [--queue KB] [--busy LOOPS]
                       [--fontana PATH] [--directory DIR]";

/// Losses and numbers of receivers that are measured by default.
const LOSSES: &[u32] = &[0, 1, 10, 30];
const RECEIVERS: &[usize] = &[1, 3, 10];
/// Receivers of a run with a disturbance.
const DISTURBED: usize = 3;

/// What is measured, and how.
#[derive(Debug, PartialEq)]
pub(crate) struct NetPlan {
    pub(crate) settings: Vec<Setting>,
    pub(crate) tools: Vec<Tool>,
    /// Bytes of the file.
    pub(crate) size: u64,
    pub(crate) repetitions: usize,
    /// Mbit/s of the tools that are told a rate; `None`: [`Setting::rate`].
    pub(crate) rate: Option<u32>,
    /// `--memory` of Fontana; `None`: its default.
    pub(crate) memory: Option<String>,
    /// `--burst` of Fontana's sender in milliseconds; `None`: its default.
    pub(crate) burst: Option<u32>,
    /// `--block-symbols` of Fontana's sender; `None`: its default.
    pub(crate) block_symbols: Option<u32>,
    /// Queue of each receiver's link in kB, which is a little faster than the rate that the sender
    /// is told; `None`: links without a limit.
    pub(crate) queue: Option<u32>,
    /// Threads that compute during each run, for other programs on a busy host.
    pub(crate) busy: usize,
    /// Fontana's program; `None`: that of this workspace.
    pub(crate) fontana: Option<PathBuf>,
    /// Where directories for the runs are created: a tmpfs.
    pub(crate) directory: PathBuf,
}

/// Which defaults the other options change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Whole,
    Quick,
    Smoke,
}

impl NetPlan {
    /// Parses what follows `net`, except `--json`.
    ///
    /// # Errors
    /// The mistake.
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = arguments;
        let (mut scope, mut peers) = (Scope::Whole, false);
        let (mut tools, mut modes, mut disturbances) = (None, None, None);
        let (mut receivers, mut losses) = (None, None);
        let (mut size, mut repetitions) = (None, None);
        let mut plan = Self {
            settings: Vec::new(),
            tools: Vec::new(),
            size: 0,
            repetitions: 0,
            rate: None,
            memory: None,
            burst: None,
            block_symbols: None,
            queue: None,
            busy: 0,
            fontana: None,
            directory: PathBuf::from("/dev/shm"),
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--quick" => scope = Scope::Quick,
                "--smoke" => scope = Scope::Smoke,
                "--peers" => peers = true,
                "--tool" => tools = Some(list(&value()?, |n| named(Tool::ALL, Tool::name, n))?),
                "--mode" => modes = Some(list(&value()?, |n| named(Mode::ALL, Mode::name, n))?),
                "--scenario" => {
                    let of = |name: &str| named(Disturbance::ALL, Disturbance::name, name);
                    disturbances = Some(list(&value()?, of)?);
                }
                "--receivers" => receivers = Some(list(&value()?, |n| within(n, 1..=200))?),
                "--loss" => losses = Some(list(&value()?, |n| within(n, 0..=90))?),
                "--size" => size = Some(within(&value()?, 1..=65_536)?),
                "--repetitions" => repetitions = Some(within(&value()?, 1..=1_000)?),
                "--rate" => plan.rate = Some(within(&value()?, 1..=1_000_000)? as u32),
                "--memory" => plan.memory = Some(value()?),
                "--burst" => plan.burst = Some(within(&value()?, 0..=1_000)? as u32),
                "--block-symbols" => {
                    plan.block_symbols = Some(within(&value()?, 1..=56_403)? as u32);
                }
                "--queue" => plan.queue = Some(within(&value()?, 4..=100_000)? as u32),
                "--busy" => plan.busy = within(&value()?, 0..=1_000)? as usize,
                "--fontana" => plan.fontana = Some(value()?.into()),
                "--directory" => plan.directory = value()?.into(),
                other => return Err(format!("what is {other}?")),
            }
        }
        if plan.queue.is_some() && plan.rate.is_none() {
            return Err("--queue needs --rate, which the links exceed a little".to_owned());
        }
        let (default_size, default_repetitions) = match scope {
            Scope::Whole => (256, 5),
            Scope::Quick => (256, 3),
            Scope::Smoke => (8, 1),
        };
        plan.size = size.unwrap_or(default_size) << 20;
        plan.repetitions = repetitions.unwrap_or(default_repetitions) as usize;
        plan.tools = tools.unwrap_or_else(|| {
            Tool::ALL.into_iter().filter(|tool| peers || !tool.is_peer()).collect()
        });
        let (names_losses, names_scenarios) = (losses.is_some(), disturbances.is_some());
        let narrow = scope != Scope::Whole;
        let losses = losses.map(|losses| losses.iter().map(|&loss| loss as u32).collect());
        let losses: Vec<u32> = losses.unwrap_or_else(|| match scope {
            Scope::Whole => LOSSES.to_vec(),
            Scope::Quick => vec![0, 10],
            Scope::Smoke => vec![0],
        });
        let receivers = receivers.map(|counts| counts.iter().map(|&n| n as usize).collect());
        let receivers: Vec<usize> = receivers.unwrap_or_else(|| match scope {
            Scope::Whole => RECEIVERS.to_vec(),
            Scope::Quick => vec![DISTURBED],
            Scope::Smoke => vec![1],
        });
        let default_modes = if narrow { vec![Mode::Frames] } else { Mode::ALL.to_vec() };
        let default_disturbances =
            if narrow { vec![Disturbance::Plain] } else { Disturbance::ALL.to_vec() };
        let disturbances = disturbances.unwrap_or(default_disturbances);
        for mode in modes.unwrap_or(default_modes) {
            for &disturbance in &disturbances {
                for &receivers in &receivers {
                    let setting = |&loss| Setting { mode, loss, receivers, disturbance };
                    plan.settings.extend(losses.iter().map(setting));
                }
            }
        }
        // A rule drops a whole frame: in offload mode a loss is that of GSO batches.
        let is_wanted = |setting: &Setting| {
            let Setting { mode, loss, receivers, disturbance } = *setting;
            (names_losses || mode == Mode::Frames || loss == 0)
                && (names_scenarios
                    || disturbance == Disturbance::Plain
                    || (mode, loss, receivers) == (Mode::Frames, 0, DISTURBED))
        };
        plan.settings.retain(is_wanted);
        Ok(plan)
    }
}

fn list<T>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split(',').map(parse).collect()
}

fn named<T: Copy, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
    wanted: &str,
) -> Result<T, String> {
    let names = all.map(name).join(", ");
    let found = all.into_iter().find(|&one| name(one) == wanted);
    found.ok_or_else(|| format!("{wanted} is none of {names}"))
}

#[cfg(test)]
mod tests {
    // `cargo bench` compiles this without a harness: then there are no tests to use it.
    #[allow(unused_imports)]
    use super::*;

    #[allow(dead_code)]
    fn parse(words: &str) -> Result<NetPlan, String> {
        NetPlan::parse(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn quick_is_two_losses_and_three_receivers_of_256_mib() {
        let plan = parse("--quick --peers").unwrap();
        assert_eq!((plan.size, plan.repetitions, plan.tools.len()), (256 << 20, 3, 8));
        let settings: Vec<_> = plan.settings.iter().map(|s| (s.loss, s.receivers)).collect();
        assert_eq!(settings, [(0, 3), (10, 3)]);
        assert!(plan.settings.iter().all(|s| s.mode == Mode::Frames));
    }

    #[test]
    fn the_whole_bench_has_each_loss_on_frames_and_each_disturbance_once() {
        let plan = parse("").unwrap();
        let fontana = [Tool::Fontana, Tool::FontanaTicket, Tool::FontanaReports];
        assert_eq!(plan.tools, [&[Tool::Ceiling, Tool::Floor][..], &fontana].concat());
        let count = |mode, disturbance| {
            let is = |s: &&Setting| s.mode == mode && s.disturbance == disturbance;
            plan.settings.iter().filter(is).count()
        };
        assert_eq!(count(Mode::Frames, Disturbance::Plain), 12);
        assert_eq!(count(Mode::Offload, Disturbance::Plain), 3);
        assert_eq!(count(Mode::Frames, Disturbance::Late), 1);
        assert_eq!(count(Mode::Offload, Disturbance::Restart), 0);
    }

    #[test]
    fn options_restrict_and_change() {
        let plan = parse("--quick --loss 30 --tool fontana,uftp --size 1024 --rate 150").unwrap();
        assert_eq!(plan.tools, [Tool::Fontana, Tool::Uftp]);
        assert_eq!((plan.size, plan.rate), (1 << 30, Some(150)));
        assert_eq!(plan.settings.iter().map(|s| s.loss).collect::<Vec<_>>(), [30]);
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(parse("--loss 91").unwrap_err(), "91 is not a number from 0 to 90");
        assert_eq!(parse("--mode x").unwrap_err(), "x is none of frames, offload");
        assert_eq!(parse("--size").unwrap_err(), "--size needs a value");
        let error = "--queue needs --rate, which the links exceed a little";
        assert_eq!(parse("--queue 15").unwrap_err(), error);
        assert_eq!(parse("--fast").unwrap_err(), "what is --fast?");
    }
}
