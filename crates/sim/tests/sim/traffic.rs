//! The models of TCP compared with known properties of TCP.

use fontana_proto::{Driver, Instant, Receiver};
use fontana_sim::{
    Dumbbell, FlowId, IdRunner, LinkConfig, LossModel, NodePair, Probability, Simulation,
    SimulationConfig, TcpConfig, TcpVariant, Topology, Traffic,
};
use std::time::Duration;

const MBIT: u64 = 125_000;
const SEGMENT: u64 = 1_500;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

struct Bench {
    run: Simulation<Driver<Receiver, IdRunner>>,
    flows: Vec<FlowId>,
}

impl Bench {
    /// One flow for each variant, over one bottleneck. Round trips are 80 ms and some noise,
    /// without which flows at a full queue synchronize.
    fn new(bottleneck: LinkConfig, variants: &[TcpVariant], seed: u64) -> Self {
        let access = LinkConfig { jitter: Duration::from_micros(100), ..LinkConfig::wire(ms(10)) };
        let bottleneck = LinkConfig { delay: ms(20), ..bottleneck };
        let Dumbbell { topology, pairs, .. } =
            Dumbbell::new(variants.len() as u32, bottleneck, access);
        let mut run = Simulation::new(topology, SimulationConfig::new(seed), ());
        let flows = pairs.iter().zip(variants).zip(0..).map(|((&pair, &variant), i)| {
            let traffic = Traffic::Tcp(TcpConfig::new(variant));
            run.add_flow(pair, traffic, Instant::ZERO + ms(100 * i), at(1 << 20)).unwrap()
        });
        let flows = flows.collect();
        Self { run, flows }
    }

    /// Segments that each flow delivers between two times.
    fn delivered(&mut self, from: u64, until: u64) -> Vec<f64> {
        let mut count = |time| {
            self.run.run_until(at(time)).unwrap();
            let delivered = |&flow: &FlowId| self.run.flow(flow).unwrap().delivered as f64;
            self.flows.iter().map(delivered).collect::<Vec<_>>()
        };
        let (before, after) = (count(from), count(until));
        after.iter().zip(before).map(|(after, before)| after - before).collect()
    }
}

/// Jain's index: 1 if all have the same, 1/n if one has all.
fn fairness(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|s| s * s).sum::<f64>())
}

#[test]
fn equals_share_a_bottleneck_evenly_and_fill_it() {
    for variant in [TcpVariant::Reno, TcpVariant::Cubic] {
        let link = LinkConfig::bottleneck(20 * MBIT, ms(100), ms(0));
        let mut bench = Bench::new(link, &[variant; 4], 1);
        let shares = bench.delivered(20, 100);
        let used = shares.iter().sum::<f64>() * SEGMENT as f64 / 80.0 / (20 * MBIT) as f64;
        assert!(used > 0.9, "{variant:?} uses {used}");
        assert!(fairness(&shares) > 0.9, "{variant:?}: {shares:?}");
    }
}

#[test]
fn cubic_and_reno_share_a_bottleneck_and_neither_starves() {
    // A round trip of 80 ms and this rate are within CUBIC's Reno-friendly region.
    let link = LinkConfig::bottleneck(10 * MBIT, ms(80), ms(0));
    let mut bench = Bench::new(link, &[TcpVariant::Cubic, TcpVariant::Reno], 2);
    let shares = bench.delivered(20, 140);
    let used = shares.iter().sum::<f64>() * SEGMENT as f64 / 120.0 / (10 * MBIT) as f64;
    assert!(used > 0.9, "{used}");
    let ratio = shares[0] / shares[1];
    assert!((0.4..4.5).contains(&ratio), "{ratio}");
}

/// Mean windows of one flow that loses one packet in `period`, in segments.
fn mean_window(variant: TcpVariant, period: u32) -> f64 {
    let loss = LossModel::Periodic { period, first: period - 1 };
    let mut bench = Bench::new(LinkConfig::default().with_loss(loss), &[variant], 3);
    // The round trip of 80 ms and four times the noise.
    bench.delivered(60, 260)[0] * 0.0804 / 200.0
}

#[test]
fn the_sawtooth_has_the_mean_window_of_the_theory() {
    // Reno: sqrt(3 / 2p) (Mathis et al. 1997).
    for period in [2_000, 20_000] {
        let (mean, theory) =
            (mean_window(TcpVariant::Reno, period), (1.5 * f64::from(period)).sqrt());
        assert!((0.9..1.1).contains(&(mean / theory)), "Reno, 1/{period}: {mean}, not {theory}");
    }
    // CUBIC: 1.054 RTT^(3/4) / p^(3/4) (RFC 9438, section 5.1), where that is more than Reno's.
    let theory = 1.054 * 0.0804_f64.powf(0.75) * 20_000_f64.powf(0.75);
    let mean = mean_window(TcpVariant::Cubic, 20_000);
    assert!((0.88..1.12).contains(&(mean / theory)), "CUBIC: {mean}, not {theory}");
}

#[test]
fn constant_traffic_takes_its_share_and_no_more() {
    let Dumbbell { topology, pairs, .. } = Dumbbell::new(
        2,
        LinkConfig::bottleneck(10 * MBIT, ms(50), ms(20)),
        LinkConfig::wire(ms(10)),
    );
    let mut run: Simulation<Driver<Receiver, IdRunner>> =
        Simulation::new(topology, SimulationConfig::new(4), ());
    let cbr = Traffic::Cbr { packet_bytes: 1_250, interval: ms(2) };
    let cbr = run.add_flow(pairs[0], cbr, at(0), at(60)).unwrap();
    let tcp = Traffic::Tcp(TcpConfig::new(TcpVariant::Cubic));
    let tcp = run.add_flow(pairs[1], tcp, at(0), at(60)).unwrap();
    run.run_until(at(61)).unwrap();
    let (cbr, tcp) = (run.flow(cbr).unwrap(), run.flow(tcp).unwrap());
    assert_eq!(cbr.sent, 30_000);
    assert!(cbr.delivered > 29_000, "{cbr:?}");
    let half = 60 * 5 * MBIT / SEGMENT;
    assert!(tcp.delivered > half * 9 / 10 && tcp.delivered <= half * 11 / 10, "{tcp:?}");
}

/// A round trip in no time would make an endless run.
#[test]
fn tcp_does_not_flow_where_it_would_be_there_and_back_at_once() {
    for (delay, flows) in [(0, false), (1, true)] {
        let mut topology = Topology::new();
        let pair = NodePair { from: topology.add_node(), to: topology.add_node() };
        topology.add_link(pair.from, pair.to, LinkConfig::wire(ms(0)));
        topology.add_link(pair.to, pair.from, LinkConfig::wire(ms(delay)));
        let mut run: Simulation<Driver<Receiver, IdRunner>> =
            Simulation::new(topology, SimulationConfig::new(5), ());
        let tcp = TcpConfig { max_window: 2, ..TcpConfig::new(TcpVariant::Reno) };
        assert_eq!(run.add_flow(pair, Traffic::Tcp(tcp), at(0), at(1)).is_some(), flows);
        run.run_until(at(1)).unwrap();
    }
}

#[test]
fn a_run_of_flows_repeats_exactly() {
    let digest = |seed| {
        let link = LinkConfig::bottleneck(10 * MBIT, ms(50), ms(0));
        let lossy = link.with_loss(LossModel::Bernoulli(Probability::new(0.001)));
        let mut bench = Bench::new(lossy, &[TcpVariant::Cubic, TcpVariant::Reno], seed);
        bench.run.run_until(at(20)).unwrap();
        bench.run.digest()
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}
