//! System calls: GSO batches to the loopback interface, and the calls that receive them. The
//! sender pays for the delivery to the receiver, as on a bridge.

use super::content::{PathContent, RUN, SYMBOL_SIZE};
use super::row::{Meter, PathRow};
use super::stage::Stage;
use fontana_net::{
    Batch, ChannelAddress, Interfaces, ReceiveConfig, ReceiveSocket, SendConfig, SendSocket,
};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// A group that no other program of this host uses.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 77, 79);
/// Bytes of a header.
const HEADER: u16 = 20;
/// GSO batches that are sent before they are received: they fit into the receive buffer.
const BURST: u64 = 16;

pub(super) fn measure(content: &PathContent) -> Result<Vec<PathRow>, String> {
    let bursts = content.source_symbols().div_ceil(BURST * u64::from(RUN));
    let mut rows = with_offload(true, bursts, ["send", "receive"])?;
    rows.extend(with_offload(false, bursts, ["send one by one", "receive one by one"])?);
    Ok(rows)
}

/// Without segmentation offload, each datagram is sent by a call of its own.
fn with_offload(
    offload: bool,
    bursts: u64,
    [send, receive]: [&'static str; 2],
) -> Result<Vec<PathRow>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("the loopback interface: {error}");
    let interfaces = Interfaces::list().map_err(|error| failed(&error))?;
    let lo = interfaces.loopback().ok_or("no loopback interface")?;
    let receiver = ReceiveSocket::open(&ReceiveConfig::multicast(GROUP.into(), 0, lo));
    let mut receiver = receiver.map_err(|error| failed(&error))?;
    let to = ChannelAddress::Multicast(SocketAddr::from((GROUP, receiver.port())));
    let mut config = SendConfig::new(lo, vec![to]);
    config.offload = offload;
    let mut sender = SendSocket::new(&config).map_err(|error| failed(&error))?;
    let size = usize::from(HEADER + SYMBOL_SIZE);
    let (datagrams, mut batch) = (vec![7; size * RUN as usize], Batch::default());
    let (mut sending, mut receiving) = (Meter::default(), Meter::default());
    let (mut sent, mut received) = (0, 0);
    for _ in 0..bursts {
        sending.measure(|| {
            for _ in 0..BURST {
                let batch = sender.send_batch(0, &datagrams, size);
                sent += batch.map(|batch| batch.datagrams).map_err(|error| failed(&error))?;
            }
            Ok::<(), String>(())
        })?;
        receiving.measure(|| {
            loop {
                let count = receiver.recv_batch(Duration::ZERO, &mut batch);
                match count.map_err(|error| failed(&error))? {
                    0 => return Ok::<(), String>(()),
                    count => received += count as u64,
                }
            }
        })?;
    }
    if received == 0 {
        return Err(failed(&"no datagram arrived"));
    }
    Ok(vec![
        PathRow::new(Stage::Socket, send, sent, sending.nanos),
        PathRow::new(Stage::Socket, receive, received, receiving.nanos),
    ])
}
