//! Fuzz targets. Under `cargo test` each runs for about a second on random and mutated input, under
//! `cargo bolero test` without limit.

use crate::{digests, documentation, fcast, head, manifest, report, share, stream};
use fontana_fec::{EncodingId, Esi};
use fontana_wire::{
    CarouselInstance, Compound, CompoundHeader, CompoundMetadata, ContentEncoding, DecodeLimits,
    DigestList, Extension, Fdt, Feedback, FeedbackDatagram, FluteVersion, FreshFrame, FreshIndex,
    FreshRequest, HeldIndex, Manifest, ManifestLimits, MissingSymbols, Packet, PacketSeal,
    PlacedFragment, Printable, ReservedBits, SEAL_BYTES, SealId, SealNonce, SealedDatagram,
    SealedShare, SecretKey, ShareBody, ShareMessage, ShareRequest, ShelfIndex, StreamIndex,
    TAG_BYTES, Ticket, UnverifiedHead, UnverifiedRollCall, decode_bounded, fti,
    parse_content_location,
};

mod feedback;
mod structures;
mod texts;

#[test]
fn packet() {
    bolero::check!().for_each(|datagram: &[u8]| {
        for reserved in [ReservedBits::Times, ReservedBits::Ignored] {
            let Ok(packet) = Packet::parse_with(datagram, reserved) else { continue };
            assert!(packet.header.extensions.into_iter().count() <= 16);
            for extension in packet.header.extensions {
                if let Extension::Fti(content) = extension {
                    let _ = fti::parse(EncodingId(packet.header.codepoint), content)
                        .map(|oti| oti.layout());
                }
            }
            if let Ok(Some(payload)) = packet.payload(EncodingId(packet.header.codepoint)) {
                assert!(payload.symbol.len() < datagram.len());
            }
        }
    });
}

/// Random bytes rarely pass the checks of the first word, so these follow a valid one.
#[test]
fn packet_behind_a_good_first_word() {
    bolero::check!().with_type::<(u8, u8, Vec<u8>)>().for_each(|(flags, words, rest)| {
        let datagram = [&[0x10, *flags, words % 32, 6], rest.as_slice()].concat();
        if let Ok(packet) = Packet::parse(&datagram) {
            assert!(packet.header.extensions.into_iter().count() <= 16);
            let _ = packet.payload(EncodingId(6));
        }
    });
}

/// Random bytes, and messages of each kind that are changed somewhere.
#[test]
fn message_of_a_receiver_that_shares() {
    let messages = share::messages().iter().map(share::emitted).collect::<Vec<_>>();
    let messages: Vec<_> =
        messages.into_iter().chain(share::sealed().into_iter().map(|(_, sealed)| sealed)).collect();
    bolero::check!().with_type::<(u8, u16, u16, Vec<u8>)>().for_each(|(which, at, cut, patch)| {
        let good = messages.get(usize::from(*which) % 9).unwrap_or(patch);
        let mut datagram = patched(good, *at, *cut, patch);
        if let Some(sealed) = SealedShare::find(&datagram) {
            // Whatever the tag says, what was opened is parsed.
            sealed.open(&mut datagram, &Sum);
            datagram = SealedShare::opened(&datagram).to_vec();
        }
        let Ok(message) = ShareMessage::parse(&datagram) else { return };
        assert_eq!(share::emitted(&message), datagram, "one form for each message");
        if let ShareBody::Request(ShareRequest { missing: Some(missing), .. }) = &message.body {
            let symbols: Vec<u32> = missing.symbols().collect();
            assert!(symbols.len() <= MissingSymbols::MAX_SPAN as usize);
            assert_eq!(MissingSymbols::of(symbols).as_ref(), Some(missing));
        }
    });
}

#[test]
fn fdt() {
    bolero::check!().for_each(|xml: &[u8]| match Fdt::parse(xml) {
        Ok(fdt) => assert!(Fdt::parse(&fdt.emit(FluteVersion::V2)).is_ok()),
        Err(error) => assert!(!error.to_string().contains(char::is_control)),
    });
}

#[test]
fn fdt_attributes() {
    bolero::check!().with_type::<(u8, String)>().for_each(|(which, value)| {
        let names = [
            "Expires",
            "Complete",
            "TOI",
            "Content-Length",
            "Content-MD5",
            "FEC-OTI-Scheme-Specific-Info",
            "FEC-OTI-FEC-Encoding-ID",
        ];
        let name = names[usize::from(*which) % names.len()];
        let xml = format!("<FDT-Instance Expires='1'><File {name}='{value}'/></FDT-Instance>");
        let _ = Fdt::parse(xml.as_bytes());
    });
}

#[test]
fn compound_object() {
    let good = CompoundHeader::Object(fcast::full()).with_data(b"some bytes");
    bolero::check!().with_type::<(u16, u16, Vec<u8>)>().for_each(|(at, cut, patch)| {
        let mut bytes = patched(&good, *at, *cut, patch);
        // Without the checksum over the whole object, which would reject nearly all input.
        for global in [0x02, 0] {
            if let Some(flags) = bytes.first_mut() {
                *flags = *flags & !0x02 | global;
            }
            match Compound::parse_header(&bytes, bytes.len() as u64) {
                Ok(compound) => {
                    assert!(compound.data_offset <= bytes.len());
                    let object = compound.header.with_data(&bytes[compound.data_offset..]);
                    assert_eq!(Compound::parse(&object).unwrap().header, compound.header);
                }
                Err(error) => assert!(!error.to_string().contains(char::is_control)),
            }
        }
    });
}

#[test]
fn object_list() {
    let alphabet = b"0123456789,-()=/";
    bolero::check!().for_each(|bytes: &[u8]| {
        let likely: Vec<u8> = bytes.iter().map(|byte| alphabet[usize::from(byte % 16)]).collect();
        for list in [bytes, &likely] {
            match CarouselInstance::parse(&CompoundMetadata::default(), list) {
                Ok(instance) => {
                    let object = instance.emit();
                    let compound = Compound::parse(&object).unwrap();
                    let list = &object[compound.data_offset..];
                    let again = CarouselInstance::parse(compound.header.metadata(), list);
                    assert_eq!(again, Ok(instance));
                }
                Err(error) => assert!(!error.to_string().contains(char::is_control)),
            }
        }
    });
}

/// Lists of digests that differ from a good one in some bytes. None is valid but that one.
#[test]
fn digest_list() {
    let good = digests::lists(10, 3).remove(1);
    let key = digests::key().public_key();
    bolero::check!().with_type::<(u16, u16, Vec<u8>)>().for_each(|(at, cut, patch)| {
        let bytes = patched(&good, *at, *cut, patch);
        match DigestList::parse(&bytes) {
            Ok(list) => {
                assert!(list.index() < list.lists() && (1..=96).contains(&list.digests().len()));
                let is_valid = list.verifies(&key, digests::instance(), list.root());
                assert_eq!(is_valid, bytes == good);
            }
            Err(error) => assert!(!error.to_string().contains(char::is_control)),
        }
    });
}

#[test]
fn session_head() {
    let key = SecretKey::from_seed(&[7; 32]);
    let good = head::sample().emit(Some(&key));
    bolero::check!().with_type::<(u16, u16, Vec<u8>)>().for_each(|(at, cut, patch)| {
        let symbol = patched(&good, *at, *cut, patch);
        if let Ok(head) = UnverifiedHead::parse(&symbol) {
            let signed = head.claimed_signer().is_some();
            let trusted = head.clone().verify(&key.public_key());
            assert!(trusted.is_err() || symbol.starts_with(&good));
            if !signed {
                let bytes = head.without_verification().emit(None);
                assert!(symbol.starts_with(&bytes));
                assert!(symbol[bytes.len()..].iter().all(|&byte| byte == 0));
            }
        }
    });
}

#[test]
fn manifest_bytes() {
    let good = Manifest::new(
        1,
        "label",
        vec![manifest::object(1, 100, 3)],
        vec![manifest::file("a/b", &[manifest::extent(1, 0, 100), manifest::hole(5)])],
    )
    .unwrap()
    .emit();
    bolero::check!().with_type::<(u16, u16, Vec<u8>)>().for_each(|(at, cut, patch)| {
        let bytes = patched(&good, *at, *cut, patch);
        if let Ok(manifest) = Manifest::parse(&bytes, &ManifestLimits::default()) {
            assert_eq!(manifest.emit(), bytes);
            let _ = manifest.case_clash();
            for file in manifest.files() {
                assert!(file.length() <= i64::MAX as u64);
            }
        }
    });
}

#[test]
fn stream_index() {
    let good = stream::sample().emit();
    bolero::check!().with_type::<(u16, u16, Vec<u8>)>().for_each(|(at, cut, patch)| {
        let bytes = patched(&good, *at, *cut, patch);
        if let Ok(index) = StreamIndex::parse(&bytes) {
            assert_eq!(index.emit(), bytes);
            assert!(index.length() <= i64::MAX as u64);
            for PlacedFragment { number, fragment, .. } in index.placed() {
                let layout = index.oti(fragment.length).layout().unwrap();
                assert_eq!(layout.block_count(), 1);
                assert_eq!(StreamIndex::number(StreamIndex::toi(number)), Some(number));
            }
        }
    });
}

#[test]
fn ticket() {
    bolero::check!().with_type::<String>().for_each(|text| {
        for text in
            [text.clone(), format!("fontana://{text}"), format!("fontana://1.2.3.4:5/{text}")]
        {
            match text.parse::<Ticket>() {
                Ok(ticket) => assert_eq!(ticket.to_string().parse(), Ok(ticket)),
                Err(error) => assert!(!error.to_string().contains(char::is_control)),
            }
        }
    });
}

#[test]
fn names_from_outside() {
    bolero::check!().for_each(|bytes: &[u8]| {
        assert!(!Printable(bytes).to_string().contains(char::is_control));
        if let Ok(text) = str::from_utf8(bytes) {
            let _ = parse_content_location(text);
        }
    });
}

#[test]
fn content_decoding() {
    let limits = DecodeLimits { output_bytes: 1 << 16, ratio: 1032 };
    bolero::check!().for_each(|bytes: &[u8]| {
        for cenc in 0..4 {
            let encoding = ContentEncoding::from_cenc(cenc).unwrap();
            let _ = decode_bounded(encoding, bytes, std::io::sink(), &limits);
        }
    });
}

/// Valid bytes, truncated and overwritten at one place.
fn patched(good: &[u8], at: u16, cut: u16, patch: &[u8]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    let at = usize::from(at) % (bytes.len() + 1);
    let end = (at + usize::from(cut % 8)).min(bytes.len());
    bytes.splice(at..end, patch.iter().copied());
    bytes
}

/// A cipher for tests of the format: the tag is a sum, and nothing is encrypted.
pub(crate) struct Sum;

impl PacketSeal for Sum {
    fn seal(&self, nonce: SealNonce, authenticated: &[u8], text: &mut [u8]) -> [u8; TAG_BYTES] {
        let bytes = nonce.iter().chain(authenticated).chain(text.iter());
        bytes.fold(1_u128, |sum, &byte| sum.wrapping_mul(257) + u128::from(byte)).to_be_bytes()
    }

    fn open(
        &self,
        nonce: SealNonce,
        authenticated: &[u8],
        text: &mut [u8],
        tag: [u8; TAG_BYTES],
    ) -> bool {
        self.seal(nonce, authenticated, text) == tag
    }
}

#[test]
fn shelf_index() {
    let good = documentation::shelf_index().emit();
    bolero::check!().with_type::<(u8, u8, Vec<u8>)>().for_each(|(at, value, bytes)| {
        let mut altered = good.clone();
        if let Some(byte) = altered.get_mut(usize::from(*at)) {
            *byte = *value;
        }
        for bytes in [&altered, bytes] {
            let Ok(index) = ShelfIndex::parse(bytes) else { continue };
            assert_eq!(&index.emit(), bytes);
            let layout = index.layout(1_400, [1, 56_403]);
            assert!(layout.length() > 0);
        }
    });
}

#[test]
fn fresh_index() {
    let good = documentation::fresh_index().emit();
    bolero::check!().with_type::<(u8, u8, u32, Vec<u8>)>().for_each(|(at, value, esi, bytes)| {
        let mut altered = good.clone();
        if let Some(byte) = altered.get_mut(usize::from(*at)) {
            *byte = *value;
        }
        for bytes in [&altered, bytes] {
            let Ok(index) = FreshIndex::parse(bytes) else { continue };
            assert_eq!(&index.emit(), bytes);
            let number = index.start.number(Esi(*esi));
            assert_eq!(number.is_some(), (1 << 23..1 << 24).contains(esi));
            assert!(number.is_none_or(|number| index.start.esi(number) == Esi(*esi)));
        }
        let _ = FreshFrame::parse(bytes);
    });
}

#[test]
fn held_index() {
    let good = documentation::held_index().emit();
    bolero::check!().with_type::<(u8, u8, Vec<u8>)>().for_each(|(at, value, bytes)| {
        let mut altered = good.clone();
        if let Some(byte) = altered.get_mut(usize::from(*at)) {
            *byte = *value;
        }
        for bytes in [&altered, bytes] {
            let Ok(index) = HeldIndex::parse(bytes) else { continue };
            assert_eq!(&index.emit(), bytes);
            assert!(index.runs.iter().all(|run| run.end().is_some_and(|end| end > run.first.0)));
        }
    });
}

#[test]
fn fresh_request() {
    let good = documentation::fresh_request().to_string();
    bolero::check!().with_type::<(u8, u8, Vec<u8>)>().for_each(|(at, value, bytes)| {
        let mut altered = good.clone().into_bytes();
        if let Some(byte) = altered.get_mut(usize::from(*at)) {
            *byte = *value;
        }
        for bytes in [&altered, bytes] {
            let query = String::from_utf8_lossy(bytes);
            let Ok(request) = FreshRequest::parse(&query) else { continue };
            // Another text of the same request is possible, but what is emitted is parsed.
            assert_eq!(FreshRequest::parse(&request.to_string()).as_ref(), Ok(&request));
            assert!(request.blocks.len() <= FreshRequest::MAX_BLOCKS);
            assert!(request.symbols().is_none_or(|symbols| symbols <= 256 << 17));
        }
    });
}

#[test]
fn roll_call() {
    let key = SecretKey::from_seed(&[7; 32]);
    let good = [report::roll_call(), report::repair_call(), report::rate_call()]
        .map(|call| call.emit(&key));
    bolero::check!().with_type::<(u16, u16, Vec<u8>)>().for_each(|(at, cut, patch)| {
        for bytes in good.each_ref().map(|good| patched(good, *at, *cut, patch)) {
            let Ok(call) = UnverifiedRollCall::parse(&bytes) else { continue };
            // Every roll call has one encoding: all but the signature is the same.
            let again = call.claimed().emit(&key);
            let unsigned = bytes.len() - 96;
            assert_eq!(again.get(..unsigned), bytes.get(..unsigned));
            let _ = call.verify(&key.public_key());
        }
    });
}

#[test]
fn receiver_report() {
    feedback(&Feedback::Report(report::report()));
}

#[test]
fn repair_request() {
    feedback(&Feedback::Request(report::request()));
}

#[test]
fn named_request() {
    feedback(&Feedback::Request(report::named_request()));
}

#[test]
fn rate_report() {
    feedback(&Feedback::Rate(report::rate_report()));
}

/// What is read from an altered datagram has one encoding.
fn feedback(good: &Feedback) {
    let key = SecretKey::from_seed(&[9; 32]);
    let good = good.emit(SealId([7; 8]), 6, Some(&key), None::<&Sum>);
    bolero::check!().with_type::<(u16, u16, Vec<u8>)>().for_each(|(at, cut, patch)| {
        let bytes = patched(&good, *at, *cut, patch);
        let Ok(datagram) = FeedbackDatagram::parse(&bytes) else { return };
        let _ = datagram.open(Some(&Sum));
        if let Ok(opened) = datagram.open(None::<&Sum>) {
            let header = datagram.header;
            let signer = opened.claimed_signer().map(|_| &key);
            let again = opened.feedback.emit(header.instance, header.counter, signer, None::<&Sum>);
            let unsigned = bytes.len() - if signer.is_some() { 96 } else { 0 };
            assert_eq!(again.get(..unsigned), bytes.get(..unsigned));
            let _ = opened.is_signed_by(&key.public_key());
        }
    });
}

/// Bytes with a seal at any place of a header. What was sealed can be opened; the packet then
/// differs in the type of the extension and in the tag.
#[test]
fn sealed_datagram() {
    bolero::check!().with_type::<(u8, bool, Vec<u8>)>().for_each(|(words, encrypt, rest)| {
        let mut datagram = [&[0x10, 0xA0, *words, 6], rest.as_slice()].concat();
        let end = usize::from(*words) * 4;
        let seal = end.checked_sub(SEAL_BYTES).and_then(|at| datagram.get_mut(at..end));
        if let Some(place) = seal.and_then(|seal| seal.first_chunk_mut()) {
            *place = [1, 9, if *encrypt { 0xF3 } else { 0xF1 }, 0];
        }
        let Some(sealed) = SealedDatagram::find(&datagram) else { return };
        sealed.seal(&mut datagram, &Sum);
        let again = SealedDatagram::find(&datagram).unwrap();
        assert_eq!(again.field, sealed.field);
        let length = datagram.len();
        assert!(again.open(&mut datagram, &Sum));
        assert_eq!(datagram.len(), length);
        assert_eq!(SealedDatagram::find(&datagram), None, "it is opened once");
        if let Some(byte) = datagram.last_mut() {
            *byte ^= 1;
        }
        let _ = Packet::parse(&datagram).map(|packet| packet.header.extensions.are_of_encrypted());
    });
}
