//! Files that tables do not name any more: they are out when the tables that named them have
//! expired, and another one is still sent.

use super::sender::{Listener, SentFile, expires_in, table_of};
use fontana_proto::{Expired, ReceiverEvent};
use fontana_wire::Fdt;
use std::time::Duration;

fn deleting() -> Listener {
    let mut listener = Listener::new();
    listener.receiver.endpoint.watch_tables();
    listener.receiver.endpoint.delete_expired();
    listener
}

/// The packets of a table that expires so many seconds after the start.
fn until(instance: u32, files: &[&SentFile], seconds: i64) -> Vec<Vec<u8>> {
    let files = files.iter().map(|file| file.described()).collect();
    table_of(instance, &Fdt { expires: expires_in(seconds), complete: false, files })
}

/// What is out by now.
fn out(listener: &mut Listener) -> Vec<Expired> {
    std::mem::take(&mut listener.receiver.runner.files.expired)
}

fn paths(listener: &mut Listener) -> Vec<String> {
    out(listener).into_iter().flat_map(|expired| expired.paths).collect()
}

fn files() -> [SentFile; 2] {
    [SentFile::new(1, "a", 600, 1), SentFile::new(2, "http://host/b", 600, 2)]
}

#[test]
fn a_file_is_out_when_its_table_has_expired_and_another_one_is_sent() {
    let [a, b] = files();
    let mut listener = deleting();
    listener.hear_all(&until(1, &[&a, &b], 20));
    listener.hear_all(&[a.packets(), b.packets()].concat());
    let second = until(2, &[&a], 200);
    for _ in 0..28 {
        listener.hear_all(&second);
        listener.wait(Duration::from_secs(1));
        assert_eq!(paths(&mut listener), [""; 0], "{:?}", listener.now);
    }
    listener.wait(Duration::from_secs(3));
    listener.hear_all(&second);
    assert_eq!(out(&mut listener), [Expired { paths: vec!["b".to_owned()], earlier: true }]);
    // It is received again, under the same number, if a table names it again.
    let found = |listener: &Listener| {
        listener.count(|event| matches!(event, ReceiverEvent::FileFound { .. }))
    };
    assert_eq!(found(&listener), 2);
    listener.hear_all(&until(3, &[&b], 300));
    listener.hear_all(&b.packets());
    assert_eq!(found(&listener), 3);
    assert_eq!(listener.receiver.runner.files.named.len(), 3);
}

/// Instances complement each other, so that one says nothing of the files of others.
#[test]
fn a_file_stays_as_long_as_a_table_that_names_it_is_valid() {
    let [a, b] = files();
    let mut listener = deleting();
    let (of_a, of_b) = (until(1, &[&a], 500), until(2, &[&b], 20));
    listener.hear_all(&[of_a.clone(), of_b, a.packets(), b.packets()].concat());
    listener.wait(Duration::from_secs(15));
    listener.hear_all(&until(3, &[&b], 100));
    for _ in 0..90 {
        listener.hear_all(&of_a);
        listener.wait(Duration::from_secs(1));
        let second = listener.now.as_nanos() / 1_000_000_000;
        assert!(second >= 110 || paths(&mut listener).is_empty(), "{second}");
    }
    listener.wait(Duration::from_secs(8));
    listener.hear_all(&of_a);
    assert_eq!(paths(&mut listener), ["b"]);
}

#[test]
fn silence_and_tables_that_have_expired_delete_nothing() {
    let [a, b] = files();
    let mut listener = deleting();
    listener.hear_all(&until(1, &[&a, &b], 20));
    listener.hear_all(&[a.packets(), b.packets()].concat());
    let valid = until(2, &[&a], 10_000);
    listener.hear_all(&valid);
    listener.wait(Duration::from_secs(600));
    // The clock of the sender, or of this host, is wrong.
    for instance in 3..9 {
        listener.hear_all(&until(instance, &[&a], 30));
        listener.wait(Duration::from_secs(5));
    }
    assert_eq!(out(&mut listener), []);
    listener.hear_all(&valid);
    assert_eq!(paths(&mut listener), ["b"]);
}

#[test]
fn a_receiver_that_does_not_delete_is_told_nothing() {
    let [a, b] = files();
    let mut listener = Listener::new();
    listener.receiver.endpoint.watch_tables();
    listener.hear_all(&until(1, &[&a, &b], 20));
    listener.hear_all(&[a.packets(), b.packets()].concat());
    listener.wait(Duration::from_secs(100));
    listener.hear_all(&until(2, &[&a], 500));
    assert_eq!(out(&mut listener), []);
}

/// A stranger who takes the sender's address can shorten no file's time.
#[test]
fn a_table_that_expires_earlier_shortens_no_time() {
    let [a, b] = files();
    let mut listener = deleting();
    listener.hear_all(&until(1, &[&a, &b], 200));
    listener.hear_all(&[a.packets(), b.packets()].concat());
    listener.hear_all(&until(2, &[&b], 1));
    let other = until(3, &[&a], 1_000);
    for _ in 0..180 {
        listener.hear_all(&other);
        listener.wait(Duration::from_secs(1));
    }
    assert_eq!(out(&mut listener), []);
}
