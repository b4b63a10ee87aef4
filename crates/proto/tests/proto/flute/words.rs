//! Tables that cannot be used, in whole or in part: what is reported of them.

use super::sender::{Listener, SentFile, expires_in, table_of, xml_table};
use fontana_proto::{ReceiverEvent, TableStatus, TableWarning};
use fontana_wire::{Fdt, FdtError, InvalidEntry};

/// The warnings of a session.
fn warnings(listener: &Listener) -> Vec<TableWarning> {
    let warning = |event: &&ReceiverEvent| match event {
        ReceiverEvent::TableWarning(warning) => Some(warning.clone()),
        _ => None,
    };
    listener.events().iter().filter_map(warning).collect()
}

#[test]
fn an_invalid_entry_is_named_and_the_other_files_arrive() {
    let file = SentFile::new(1, "good", 700, 1);
    let table = Fdt { expires: expires_in(60), complete: true, files: vec![file.described()] };
    let xml = String::from_utf8(table.emit(fontana_wire::FluteVersion::V1)).unwrap();
    let bad = r#"<File TOI="0" Content-Location="bad"/></FDT-Instance>"#;
    let xml = xml.replace("</FDT-Instance>", bad);
    let mut listener = Listener::new();
    for instance in 1..4 {
        listener.hear_all(&xml_table(instance, &xml));
    }
    listener.repeat(&file.packets(), 1);
    assert!(listener.has(&file) && listener.receiver.complete_at.is_some());
    let [TableWarning::InvalidEntry(InvalidEntry { content_location, error })] =
        &warnings(&listener)[..]
    else {
        panic!("{:?}", listener.events());
    };
    assert_eq!(content_location.as_deref(), Some("bad"));
    assert!(matches!(error, FdtError::Value { attribute: "TOI", .. }));
}

#[test]
fn a_table_that_cannot_be_read_is_reported_once_with_the_reason() {
    for (xml, is_reason) in [
        (
            r#"<FDT-Instance Expires="-1"/>"#,
            (|e| matches!(e, FdtError::Value { .. })) as fn(&_) -> _,
        ),
        (r#"<!DOCTYPE x><FDT-Instance Expires="1"/>"#, |e| matches!(e, FdtError::DocumentType)),
        ("no table", |e| matches!(e, FdtError::Root)),
    ] {
        let mut listener = Listener::new();
        for instance in 1..9 {
            listener.hear_all(&xml_table(instance, xml));
        }
        let warnings = warnings(&listener);
        let [TableWarning::Unreadable(error)] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(is_reason(error), "{error}");
    }
}

#[test]
fn a_table_without_files_or_without_their_geometry_is_said() {
    let table = |files| Fdt { expires: expires_in(60), complete: true, files };
    let file = SentFile::new(1, "a", 700, 1);
    let mut described = file.described();
    (described.oti, described.content_length) = (None, None);
    for (files, status) in [
        (vec![], TableStatus::WithoutFiles),
        (vec![described], TableStatus::WithoutGeometryOfFiles),
        (vec![file.described()], TableStatus::Complete),
    ] {
        let mut listener = Listener::new();
        listener.hear_all(&table_of(1, &table(files)));
        assert_eq!(listener.table_status(), status);
    }
}
