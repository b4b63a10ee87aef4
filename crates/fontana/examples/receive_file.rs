//! Receives what a ticket names into a directory.
//!
//! ```text
//! cargo run --example receive_file -- TICKET DIRECTORY
//! ```

use fontana::{ReceiveEvent, Receiver};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let ticket = arguments.next().ok_or("TICKET DIRECTORY")?.parse()?;
    let directory = arguments.next().ok_or("TICKET DIRECTORY")?;

    let receiver = Receiver::from_ticket(&ticket).into_dir(directory).start()?;
    for event in receiver.events() {
        match event {
            ReceiveEvent::ObjectDone(object) => println!("verified: {}", object.names.join(", ")),
            ReceiveEvent::ObjectFailed { error: Some(error), .. } => eprintln!("{error}"),
            _ => {}
        }
    }
    let report = receiver.join()?;
    println!("{:?}, {} bytes", report.outcome, report.bytes);
    Ok(())
}
