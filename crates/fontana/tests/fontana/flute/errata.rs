//! The defects of the peer, packet by packet and without sockets: the proofs of `docs/errata.md`.
//! If a test fails, the peer has been fixed, and the workaround can be removed.

use super::fontana_side::{addressing, noise};
use super::peer::{TSI, config, no_code, object, packets, raptorq, sender};
use flute::core::{Oti, UDPEndpoint, lct::Cenc};
use flute::receiver::{Receiver, writer::ObjectWriterBufferBuilder};
use flute::sender::TransferConfig;
use fontana::wire::{Packet, Toi};
use std::rc::Rc;
use std::time::SystemTime;

/// The packets of the table, and those of one pass over a file.
fn session(bytes: &[u8], oti: &Oti) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut sender = sender(&addressing(), oti, &config());
    sender.add_object(0, object("file", bytes, TransferConfig::default())).unwrap();
    sender.publish(SystemTime::now()).unwrap();
    let is_table =
        |packet: &Vec<u8>| Packet::parse(packet).is_ok_and(|p| p.header.toi == Some(Toi::FDT));
    packets(sender).into_iter().partition(is_table)
}

/// Whether the peer, with its defaults, completes a file from these packets.
fn completes<'a>(packets: impl IntoIterator<Item = &'a Vec<u8>>) -> bool {
    let writer = Rc::new(ObjectWriterBufferBuilder::new(true));
    let endpoint = UDPEndpoint::new(None, "239.0.0.1".to_owned(), 1);
    let config = flute::receiver::Config::default();
    let mut peer = Receiver::new(&endpoint, TSI, writer.clone(), Some(config));
    for packet in packets {
        let _ = peer.push_data(packet, SystemTime::now());
    }
    writer.objects.borrow().iter().any(|object| object.borrow().complete)
}

#[test]
fn an_empty_file_whose_geometry_comes_before_its_name_never_arrives() {
    let arrives = |inband_fti: bool| {
        let (table, content) = session(&[], &Oti { inband_fti, ..no_code() });
        assert!(completes(table.iter().chain(&content)));
        completes(content.iter().chain(&table).chain(&content))
    };
    assert!(arrives(false));
    assert!(!arrives(true));
}

#[test]
fn an_empty_file_is_described_as_one_of_no_blocks() {
    let mut sender = sender(&addressing(), &raptorq(1), &config());
    sender.add_object(0, object("empty", &[], TransferConfig::default())).unwrap();
    let table = String::from_utf8(sender.fdt_xml_data(SystemTime::now()).unwrap()).unwrap();
    // Z = 0, N = 1, Al = 4.
    assert!(table.contains("FEC-OTI-Scheme-Specific-Info=\"AAABBA==\""), "{table}");
}

#[test]
fn a_file_whose_last_packet_overtakes_another_never_arrives() {
    let (table, mut content) = session(&noise(10_000, 1), &no_code());
    assert!(completes(table.iter().chain(&content)));
    let last = content.len() - 1;
    content.swap(last - 1, last);
    assert!(!completes(table.iter().chain(&content)));
}

#[test]
fn a_table_that_is_not_compressed_says_so_in_its_packets() {
    let (table, _) = session(&[], &no_code());
    let cenc = Packet::parse(&table[0]).unwrap().header.extensions.cenc();
    assert_eq!(cenc, Some(Cenc::Null as u8));
}
