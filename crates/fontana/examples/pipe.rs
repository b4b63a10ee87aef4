//! Sends standard input as a stream, or receives a stream to standard output.
//!
//! ```text
//! cargo run --example pipe -- send 239.255.77.1:7701 < FILE
//! cargo run --example pipe -- receive TICKET > FILE
//! ```

use fontana::{Receiver, StreamSender};
use std::time::Duration;

/// A receiver that joins later has missed the beginning.
const ANNOUNCE: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "send ADDRESS, or receive TICKET";
    let mut arguments = std::env::args().skip(1);
    match arguments.next().ok_or(usage)?.as_str() {
        "send" => {
            let address = arguments.next().ok_or(usage)?.parse()?;
            let stream = StreamSender::builder("stdin").to(address).announce(ANNOUNCE).prepare()?;
            println!("{}", stream.ticket());
            let report = stream.start(std::io::stdin())?.join()?;
            println!("{:?}", report.outcome);
        }
        "receive" => {
            let ticket = arguments.next().ok_or(usage)?.parse()?;
            // What is not written yet is in the directory for temporary files, under no name.
            let receiver = Receiver::from_ticket(&ticket)
                .into_pipe(std::io::stdout(), std::env::temp_dir())
                .start()?;
            eprintln!("receiving");
            eprintln!("{:?}", receiver.join()?.outcome);
        }
        _ => return Err(usage.into()),
    }
    Ok(())
}
