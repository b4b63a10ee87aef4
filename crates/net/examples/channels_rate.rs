//! Cost of draining the sockets of many channels instead of one: processor time of the receive
//! thread per datagram, and datagrams per batch, at a rate far below the limit of one processor.
//!
//! ```text
//! cargo run --release -p fontana-net --example channels_rate
//! ```
//!
//! The same datagrams go to 1, 8 and 64 channels in alternating runs, three times. Compare the
//! lines of one run with each other, not with those of another host.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use fontana_net::{
    ChannelAddress, Clock, Interface, Interfaces, ReceiveConfig, ReceiveSocket, ReceiveThread,
    ReceiveThreadConfig, SendConfig, SendSocket,
};

/// UDP payload of a session's packets by default.
const DATAGRAM: usize = 1400;

/// Datagrams per second, sent one by one: 112 Mbit/s.
const RATE: u64 = 10_000;

const DATAGRAMS: u64 = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let interfaces = Interfaces::list()?;
    let lo = interfaces.loopback().ok_or("no loopback interface")?;
    for _ in 0..3 {
        for channels in [1, 8, 64] {
            run(lo, channels)?;
        }
    }
    Ok(())
}

fn run(lo: &Interface, channels: u8) -> Result<(), Box<dyn Error>> {
    let group = |channel: u8| IpAddr::V4(Ipv4Addr::new(239, 255, 78, channel));
    let base = ReceiveSocket::open_all(&ReceiveConfig::multicast(group(0), 0, lo))?;
    let port = base.first().ok_or("no socket")?.port();
    let thread = ReceiveThread::spawn(base, ReceiveThreadConfig::default())?;
    for channel in 1..channels {
        thread.channels().join(channel, &ReceiveConfig::multicast(group(channel), port, lo))?;
    }
    let batches = thread.batches().clone();
    let consumer = std::thread::spawn(move || {
        let counts = batches.iter().map(|batch| (1_u64, batch.len() as u64));
        counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    });

    let to = |channel| ChannelAddress::Multicast(SocketAddr::new(group(channel), port));
    let mut sender = SendSocket::new(&SendConfig::new(lo, (0..channels).map(to).collect()))?;
    // Until the thread has set its name.
    std::thread::sleep(Duration::from_millis(50));
    let receive_thread = thread_id("fontana-receive")?;
    let (before, clock) = (processor_time(receive_thread)?, Clock::start());
    for number in 0..DATAGRAMS {
        clock.sleep_until(number * 1_000_000_000 / RATE);
        sender.send_batch((number % u64::from(channels)) as usize, &[7; DATAGRAM], DATAGRAM)?;
    }
    std::thread::sleep(Duration::from_millis(50));
    let spent = processor_time(receive_thread)? - before;
    let loss = thread.stop()?;
    let (batches, datagrams) = consumer.join().map_err(|_| "the consumer panicked")?;
    println!(
        "{channels:2} channels: {:.2} us for a datagram, {:.1} datagrams for a batch, {} missed",
        spent.as_secs_f64() * 1e6 / datagrams as f64,
        datagrams as f64 / batches as f64,
        DATAGRAMS - datagrams + loss.local_drops,
    );
    Ok(())
}

/// The thread of this process with this name.
fn thread_id(name: &str) -> Result<u32, Box<dyn Error>> {
    for entry in std::fs::read_dir("/proc/self/task")? {
        let path = entry?.path();
        if std::fs::read_to_string(path.join("comm"))?.trim() == name {
            let id = path.file_name().and_then(|id| id.to_str()).ok_or("no thread id")?;
            return Ok(id.parse()?);
        }
    }
    Err("the receive thread has another name".into())
}

/// Time that the thread has run: the first number of its `schedstat`, proc(5).
fn processor_time(thread: u32) -> Result<Duration, Box<dyn Error>> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"))?;
    let nanos = text.split_whitespace().next().ok_or("no schedstat")?;
    Ok(Duration::from_nanos(nanos.parse()?))
}
