//! Sessions packet by packet, which no honest sender sends.

use super::peer::{Background, Sending, TSI};
use fontana::Addressing;
use fontana::wire::{
    ContentEncoding, Fdt, FdtExtension, FdtFile, FdtMd5, FluteVersion, HeaderFields, NtpSeconds,
    Toi, Tsi, emit_payload_id,
};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::{EncodingId, Esi, FecScheme, Oti, Sbn};
use md5::{Digest, Md5};
use std::time::Duration;

/// Bytes of a symbol.
pub(crate) const SYMBOL: u16 = 1000;

/// No code, and blocks of 16 symbols.
pub(crate) fn oti(length: usize) -> Oti {
    let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 16 });
    Oti { transfer_length: length as u64, symbol_size: SYMBOL, scheme }
}

/// The description of a file in a table, without its transmission information.
pub(crate) fn without_oti(toi: u128, location: &str, bytes: &[u8]) -> FdtFile {
    FdtFile {
        toi: Toi(toi),
        content_location: location.to_owned(),
        content_length: Some(bytes.len() as u64),
        content_md5: Some(FdtMd5::Digest(Md5::digest(bytes).into())),
        ..FdtFile::default()
    }
}

/// The description of a file in an honest table.
pub(crate) fn described(toi: u128, location: &str, bytes: &[u8]) -> FdtFile {
    FdtFile { oti: Some(oti(bytes.len())), ..without_oti(toi, location, bytes) }
}

/// A table of all files of a session.
pub(crate) fn table(files: impl IntoIterator<Item = FdtFile>) -> Vec<u8> {
    table_of(files, true)
}

/// A table after which others follow.
pub(crate) fn open_table(files: impl IntoIterator<Item = FdtFile>) -> Vec<u8> {
    table_of(files, false)
}

fn table_of(files: impl IntoIterator<Item = FdtFile>, complete: bool) -> Vec<u8> {
    let files = files.into_iter().collect();
    Fdt { expires: NtpSeconds::from_unix_seconds(3_500_000_000), complete, files }
        .emit(FluteVersion::V2)
}

/// Packets that are sent repeatedly.
#[derive(Default)]
pub(crate) struct Session {
    steps: Vec<Step>,
    /// The last symbols of objects are padded with zeros.
    padded: bool,
}

enum Step {
    Send(Vec<u8>),
    Wait(Duration),
}

impl Session {
    /// A table, under an instance id, in packets that say how it is compressed.
    pub(crate) fn table_instance(
        mut self,
        instance_id: u32,
        bytes: &[u8],
        encoding: Option<ContentEncoding>,
    ) -> Self {
        let fields = HeaderFields {
            fdt: Some(FdtExtension { version: 2, instance_id }),
            content_encoding: encoding,
            fti: Some(oti(bytes.len())),
            ..HeaderFields::new(Tsi(TSI), Some(Toi::FDT))
        };
        self.object(fields, bytes);
        self
    }

    pub(crate) fn table(self, files: impl IntoIterator<Item = FdtFile>) -> Self {
        self.table_instance(1, &table(files), None)
    }

    /// The packets of a file.
    pub(crate) fn file(mut self, toi: u128, bytes: &[u8]) -> Self {
        self.object(HeaderFields::new(Tsi(TSI), Some(Toi(toi))), bytes);
        self
    }

    /// The source symbols of a file with this transmission information.
    pub(crate) fn file_as(mut self, toi: u128, oti: Oti, bytes: &[u8]) -> Self {
        let codepoint = oti.scheme.profile().encoding_id.0;
        let fields = HeaderFields { codepoint, ..HeaderFields::new(Tsi(TSI), Some(Toi(toi))) };
        self.source_symbols(fields, oti, bytes);
        self
    }

    /// The packets of a file, each with its transmission information.
    pub(crate) fn file_with_fti(mut self, toi: u128, bytes: &[u8]) -> Self {
        let fti = Some(oti(bytes.len()));
        self.object(HeaderFields { fti, ..HeaderFields::new(Tsi(TSI), Some(Toi(toi))) }, bytes);
        self
    }

    /// The packets of a file, each of which says that it is compressed.
    pub(crate) fn file_with_cenc(mut self, toi: u128, bytes: &[u8]) -> Self {
        let content_encoding = Some(ContentEncoding::Gzip);
        let fields = HeaderFields::new(Tsi(TSI), Some(Toi(toi)));
        self.object(HeaderFields { content_encoding, ..fields }, bytes);
        self
    }

    /// A packet as it is.
    pub(crate) fn raw(mut self, packet: Vec<u8>) -> Self {
        self.steps.push(Step::Send(packet));
        self
    }

    /// A packet that closes the session.
    pub(crate) fn close(mut self) -> Self {
        let fields = HeaderFields { close_session: true, ..HeaderFields::new(Tsi(TSI), None) };
        let mut packet = Vec::new();
        fields.emit(&mut packet);
        self.steps.push(Step::Send(packet));
        self
    }

    /// These packets.
    pub(crate) fn packets(mut self, packets: impl IntoIterator<Item = Vec<u8>>) -> Self {
        self.steps.extend(packets.into_iter().map(Step::Send));
        self
    }

    /// Pads the last symbol of each object that is added from now on.
    pub(crate) fn padded(self) -> Self {
        Self { padded: true, ..self }
    }

    /// Sends nothing for a while.
    pub(crate) fn wait(mut self, duration: Duration) -> Self {
        self.steps.push(Step::Wait(duration));
        self
    }

    /// The packets so far, cut to the first one.
    pub(crate) fn first_packet(mut self) -> Self {
        self.steps.truncate(1);
        self
    }

    fn object(&mut self, fields: HeaderFields, bytes: &[u8]) {
        self.source_symbols(fields, oti(bytes.len()), bytes);
    }

    fn source_symbols(&mut self, fields: HeaderFields, oti: Oti, bytes: &[u8]) {
        let layout = oti.layout().unwrap();
        for sbn in (0..layout.block_count()).map(Sbn) {
            for esi in (0..layout.source_symbols(sbn).unwrap()).map(Esi) {
                let mut packet = Vec::new();
                fields.emit(&mut packet);
                emit_payload_id(EncodingId(fields.codepoint), sbn, esi, &mut packet);
                let header = packet.len();
                for piece in layout.symbol_pieces(sbn, esi) {
                    let range = piece.in_object.start as usize..piece.in_object.end as usize;
                    packet.extend_from_slice(&bytes[range]);
                }
                if self.padded {
                    packet.resize(header + usize::from(SYMBOL), 0);
                }
                self.steps.push(Step::Send(packet));
            }
        }
    }

    /// Sends all packets, repeatedly.
    pub(crate) fn repeat(self, addressing: &Addressing) -> Background {
        self.run(addressing, usize::MAX)
    }

    /// Sends all packets once.
    pub(crate) fn once(self, addressing: &Addressing) -> Background {
        self.run(addressing, 1)
    }

    fn run(self, addressing: &Addressing, times: usize) -> Background {
        let mut sending = Sending::to(addressing);
        Background::run(move |stop| {
            for _ in (0..times).take_while(|_| !stop.is_cancelled()) {
                for step in &self.steps {
                    match step {
                        Step::Send(packet) => sending.send(packet),
                        Step::Wait(duration) => std::thread::sleep(*duration),
                    }
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        })
    }
}
