//! `fontana-lab emulate`: a simulated link between two real interfaces, until it is interrupted.

use crate::args::EmulateArguments;
use crate::events::EmulatorEvent as Event;
use fontana::net::{FrameError, Interface, Interfaces};
use fontana::{CancellationToken, Error, Outcome};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::json::{rounded, seconds};
use fontana_console::signal::stop_on_signals;
use fontana_console::units::{Bytes, Count, Time};
use fontana_lab::emulator::{
    Bottleneck, DirectionStats, Emulator, EmulatorConfig, FrameLink, LossModel,
};

pub(crate) fn run(
    arguments: &EmulateArguments,
    console: &Console,
    stop: &CancellationToken,
) -> Result<Outcome, Failure> {
    let interfaces = Interfaces::list()
        .map_err(|error| Failure::new(Outcome::Io, format!("list interfaces: {error}"), ""))?;
    let select = |wanted| interfaces.select(wanted).map_err(Error::from);
    let [a, b] = arguments.between.as_slice() else {
        return Err(Failure::new(Outcome::Usage, "an emulator has two ends", "--between A B"));
    };
    let (a, b) = (select(a)?, select(b)?);
    let config = config(arguments, [a, b])?;
    if a.index == b.index {
        let message = format!("{} twice: an emulator stands between two interfaces", a.name);
        return Err(Failure::new(Outcome::Usage, message, "see which there are: ip link"));
    }
    let mut emulator = Emulator::open([a, b], config.links()).map_err(|error| failure(&error))?;
    stop_on_signals(stop)?;
    console.result_event(&began(arguments, [a, b]));
    console
        .note(format_args!("emulating a link between {} and {} until interrupted", a.name, b.name));
    let ended = emulator.run(|| stop.is_cancelled());
    let [there, back] = emulator.stats();
    report(&a.name, &b.name, &there, console);
    report(&b.name, &a.name, &back, console);
    ended.map_err(|error| failure(&error)).map(|()| Outcome::Interrupted)
}

/// Checks the arguments.
fn config(arguments: &EmulateArguments, ends: [&Interface; 2]) -> Result<EmulatorConfig, Failure> {
    let usage = |message, hint: String| Failure::new(Outcome::Usage, message, hint);
    let (loss, burst) = (arguments.loss, arguments.burst);
    let shortest = (loss / (1.0 - loss)).max(1.0);
    if let Some(burst) = burst.filter(|burst| loss < 1.0 && *burst < shortest) {
        let percent = loss * 100.0;
        let message = format!("losses in bursts of {burst} do not add up to {percent} %");
        return Err(usage(message, format!("--burst is at least {shortest:.3} at this loss")));
    }
    let with_queue = |rate: u64| Bottleneck::with_queue_of(arguments.queue, rate / 8);
    let bottleneck = arguments.rate.map(with_queue);
    if let Some(Bottleneck { queue_bytes, .. }) = bottleneck {
        let packet_bytes = u64::from(ends[0].mtu.max(ends[1].mtu));
        if queue_bytes < packet_bytes {
            let message = format!(
                "a queue of {} at this rate is {}, too short for a packet of {}",
                Time(arguments.queue),
                Bytes(queue_bytes),
                Bytes(packet_bytes)
            );
            return Err(usage(message, "give a longer --queue or a higher --rate".into()));
        }
        if queue_bytes > FrameLink::ROOM as u64 {
            let (queue, room) = (Bytes(queue_bytes), Bytes(FrameLink::ROOM as u64));
            let message =
                format!("a queue of {queue} is more than the {room} that an emulator holds");
            return Err(usage(message, "give a shorter --queue".into()));
        }
    }
    Ok(EmulatorConfig {
        loss: match burst {
            Some(burst) => LossModel::markov(loss, burst),
            None => LossModel::bernoulli(loss),
        },
        delay: arguments.delay,
        jitter: arguments.jitter,
        bottleneck,
        every_frame: arguments.every_frame,
        seed: arguments.seed,
    })
}

fn began(arguments: &EmulateArguments, ends: [&Interface; 2]) -> Event {
    Event::Emulator {
        between: ends.map(|interface| interface.name.clone()).into(),
        loss: rounded(arguments.loss),
        burst: arguments.burst.map(rounded),
        delay_seconds: seconds(arguments.delay),
        jitter_seconds: seconds(arguments.jitter),
        rate_bits_per_second: arguments.rate,
        queue_seconds: arguments.rate.map(|_| seconds(arguments.queue)),
        every_frame: arguments.every_frame,
        seed: arguments.seed,
    }
}

/// Reports the counters of one direction.
fn report(from: &str, to: &str, stats: &DirectionStats, console: &Console) {
    let DirectionStats { frames, delivered, refused, missed, latest } = *stats;
    console.result_event(&Event::Emulated {
        from: from.into(),
        to: to.into(),
        offered: frames.link.offered,
        lost: frames.link.wire_drops,
        queue_drops: frames.link.queue_drops,
        exempt: frames.exempt,
        delivered,
        overflow: frames.overflow,
        refused,
        missed,
        trains: frames.trains,
        latest_seconds: seconds(latest),
    });
    console.result(format_args!(
        "{from} to {to}: {}, {} lost, {} dropped by the queue; {} sent, at most {:.3} ms late",
        Count(frames.link.offered, "frame"),
        frames.link.wire_drops,
        frames.link.queue_drops,
        Count(delivered, "frame"),
        latest.as_secs_f64() * 1e3
    ));
    if frames.trains > 0 {
        console.warning(
            &format!("{} that came to {from} were several packets", Count(frames.trains, "frame")),
            "so that each has its own fate, in the sending hosts: \
             ethtool -K INTERFACE tso off gso off tx-udp-segmentation off",
        );
    }
    let lost_here = stats.lost_here();
    if lost_here > 0 {
        let message = format!(
            "from {from} to {to} the emulator itself lost {}: {} for want of memory, {missed} for want \
             of time, {refused} that {to} refused",
            Count(lost_here, "frame"),
            frames.overflow
        );
        console.warning(&message, "give it less traffic, or a shorter delay");
    }
}

fn failure(error: &FrameError) -> Failure {
    let (outcome, hint) = match error {
        FrameError::NotPermitted { .. } => {
            (Outcome::Refused, "as root: ip netns exec NAMESPACE fontana-lab emulate ...")
        }
        FrameError::Down { .. } => (Outcome::Io, "switch it on: ip link set NAME up"),
        FrameError::System { .. } => (Outcome::Io, "raw sockets are for Linux, on Ethernet"),
    };
    Failure::new(outcome, error.to_string(), hint)
}
