//! Sends files and directories to a multicast group, or to a host, for some seconds.
//!
//! ```text
//! cargo run --example send_file -- 239.255.77.1:7701 60 PATH...
//! ```

use fontana::{Rate, SendEvent, Sender};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "ADDRESS SECONDS PATH...";
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or(usage)?.parse()?;
    let seconds = arguments.next().ok_or(usage)?.parse()?;

    let sender = Sender::builder(arguments).to(address).rate(Rate::mbit(100)).start()?;
    println!("{}", sender.description().ticket);
    for event in sender.events() {
        match event {
            SendEvent::Progress(progress) if progress.elapsed > Duration::from_secs(seconds) => {
                sender.stop();
            }
            SendEvent::Failed(error) => eprintln!("{error}"),
            _ => {}
        }
    }
    println!("{:?}", sender.join()?.outcome);
    Ok(())
}
