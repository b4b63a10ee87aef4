//! Takes versions of a publisher as they come, and ends after so many.
//!
//! ```text
//! cargo run --example follow_publisher -- TICKET DIRECTORY VERSIONS
//! ```
//!
//! The ticket names the publisher's key, and no manifest:
//! `fontana send DIRECTORY --watch --sign KEY` prints one.

use fontana::{FollowEvent, Follower, Receiver};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "TICKET DIRECTORY VERSIONS";
    let mut arguments = std::env::args().skip(1);
    let ticket = arguments.next().ok_or(usage)?.parse()?;
    let directory = arguments.next().ok_or(usage)?;
    let versions = arguments.next().ok_or(usage)?.parse()?;

    let receiver = Receiver::from_ticket(&ticket).into_dir(directory);
    let follower = Follower::builder(receiver).count(Some(versions)).start()?;
    for event in follower.events() {
        match event {
            FollowEvent::Taken(report) => println!("taken: {} bytes", report.bytes),
            FollowEvent::GivenUp(report) => println!("given up: {:?}", report.outcome),
            _ => {}
        }
    }
    println!("{:?}", follower.join()?.outcome);
    Ok(())
}
