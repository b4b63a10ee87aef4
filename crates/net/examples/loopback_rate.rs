//! Rate of datagrams through this crate over the loopback interface, with and without segmentation
//! offload, and the delay of a sleep of one millisecond.
//!
//! ```text
//! cargo run --release -p fontana-net --example loopback_rate
//! ```
//!
//! Sender, receive thread and consumer share the processors, so this is a lower bound for the
//! crate, not the rate of a network.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use fontana_net::{
    ChannelAddress, Clock, Interfaces, ReceiveConfig, ReceiveSocket, ReceiveThread,
    ReceiveThreadConfig, SendConfig, SendSocket,
};

/// UDP payload of a session's packets by default.
const DATAGRAM: usize = 1400;

/// Datagrams of the longest GSO batch that fits one IP packet.
const BATCH: usize = 46;

const DURATION: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn Error>> {
    rate(true)?;
    rate(false)?;
    sleeps();
    Ok(())
}

fn rate(offload: bool) -> Result<(), Box<dyn Error>> {
    let interfaces = Interfaces::list()?;
    let lo = interfaces.loopback().ok_or("no loopback interface")?;
    let group = Ipv4Addr::new(239, 255, 77, 78);
    let socket = ReceiveSocket::open(&ReceiveConfig::multicast(group.into(), 0, lo))?;
    let to = ChannelAddress::Multicast(SocketAddr::from((group, socket.port())));
    let mut config = SendConfig::new(lo, vec![to]);
    config.offload = offload;
    let mut sender = SendSocket::new(&config)?;
    let thread = ReceiveThread::spawn(vec![socket], ReceiveThreadConfig::default())?;
    let batches = thread.batches().clone();
    let consumer = std::thread::spawn(move || {
        batches.iter().map(|batch| batch.payload_bytes() as u64).sum::<u64>()
    });

    let clock = Clock::start();
    let batch = vec![7; DATAGRAM * BATCH];
    while u128::from(clock.now_nanos()) < DURATION.as_nanos() {
        sender.send_batch(0, &batch, DATAGRAM)?;
    }
    let seconds = clock.now_nanos() as f64 / 1e9;
    let loss = thread.stop()?;
    let received = consumer.join().map_err(|_| "the consumer panicked")?;
    println!(
        "offload {}: sent {:.2} Gbit/s ({:.0} datagrams/s), received {:.2} Gbit/s, {loss:?}",
        sender.uses_offload(),
        sender.sent().payload_bytes as f64 * 8e-9 / seconds,
        sender.sent().datagrams as f64 / seconds,
        received as f64 * 8e-9 / seconds,
    );
    Ok(())
}

fn sleeps() {
    let clock = Clock::start();
    let mut late: Vec<u64> = (1..=1000_u64)
        .map(|tick| {
            clock.sleep_until(tick * 1_000_000);
            clock.now_nanos() - tick * 1_000_000
        })
        .collect();
    late.sort_unstable();
    println!(
        "1000 ticks of 1 ms: late by {} us in the median, {} us in 99 of 100",
        late[500] / 1000,
        late[990] / 1000
    );
}
