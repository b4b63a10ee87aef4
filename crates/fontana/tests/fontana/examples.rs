//! Runs the examples between processes over the loopback interface, and checks what they do.

use fontana::{
    FluteReception, FontanaFormat, Format, Outcome, PublishEvent, Publisher, ReceiveFormat,
    Receiver, Sender, generate_key,
};
use fontana_testing::noise;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn example(name: &str) -> Command {
    let mut command = Command::new(fontana_testing::example(name));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A port of this host that is free for the moment.
fn address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The first line of what an example prints.
fn first_line(output: impl Read) -> String {
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

fn succeeded(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_file_is_sent_and_received() {
    let directory = tempfile::tempdir().unwrap();
    let (file, into) = (directory.path().join("image"), directory.path().join("into"));
    std::fs::write(&file, noise(1_000_000, 1)).unwrap();
    let address = address().to_string();
    let mut sender = example("send_file").args([&address, "600"]).arg(&file).spawn().unwrap();
    let ticket = first_line(sender.stdout.as_mut().unwrap());
    let received = example("receive_file").arg(ticket).arg(&into).output().unwrap();
    sender.kill().unwrap();
    sender.wait().unwrap();
    assert_eq!(succeeded(&received), "verified: image\nComplete, 1000000 bytes\n");
    assert!(std::fs::read(into.join("image")).unwrap() == noise(1_000_000, 1));
}

#[test]
fn a_publisher_is_followed() {
    let directory = tempfile::tempdir().unwrap();
    let (folder, into) = (directory.path().join("folder"), directory.path().join("into"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("first"), noise(1_000, 1)).unwrap();
    let mut format = FontanaFormat::default();
    format.signer = Some(generate_key().unwrap());
    let sender = Sender::builder([&folder]).to(address()).format(Format::Fontana(format));
    let publisher = Publisher::builder(sender).settle(Duration::from_millis(100)).start().unwrap();
    let ticket = publisher.events().find_map(|event| match event {
        PublishEvent::Version(session) => Some(session.lasting_ticket().to_string()),
        _ => None,
    });
    let followed =
        example("follow_publisher").arg(ticket.unwrap()).arg(&into).arg("1").output().unwrap();
    publisher.stop();
    publisher.join().unwrap();
    assert_eq!(succeeded(&followed), "taken: 1000 bytes\nComplete\n");
    assert!(std::fs::read(into.join("folder/first")).unwrap() == noise(1_000, 1));
}

#[test]
fn a_stream_goes_from_standard_input_to_standard_output() {
    let address = address().to_string();
    let mut sender = example("pipe").args(["send", &address]).spawn().unwrap();
    let ticket = first_line(sender.stdout.as_mut().unwrap());
    let mut receiver = example("pipe").args(["receive", &ticket]).spawn().unwrap();
    // A receiver that joins after the first bytes have passed has missed them.
    assert_eq!(first_line(receiver.stderr.as_mut().unwrap()), "receiving");
    sender.stdin.take().unwrap().write_all(&noise(100_000, 2)).unwrap();
    let mut bytes = Vec::new();
    receiver.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
    succeeded(&receiver.wait_with_output().unwrap());
    assert!(bytes == noise(100_000, 2), "{} bytes", bytes.len());
    succeeded(&sender.wait_with_output().unwrap());
}

#[test]
fn the_protocol_runs_over_sockets_of_the_standard_library() {
    let directory = tempfile::tempdir().unwrap();
    let (file, into) = (directory.path().join("image"), directory.path().join("into"));
    std::fs::write(&file, noise(200_000, 3)).unwrap();
    let address = address();
    // Built before the receiver's time begins.
    let mut sender = example("custom_driver");
    let receiver = Receiver::builder()
        .addressing(fontana::Addressing::to(address))
        .format(ReceiveFormat::Flute(FluteReception::default()))
        .into_dir(&into)
        .timeout(Some(Duration::from_secs(60)))
        .start()
        .unwrap();
    let sent = sender.arg(address.to_string()).arg(&file).output().unwrap();
    succeeded(&sent);
    assert_eq!(receiver.join().unwrap().outcome, Outcome::Complete);
    assert!(std::fs::read(into.join("image")).unwrap() == noise(200_000, 3));
}
