//! The file delivery table in the dialects that products use, and in invalid ones.

use crate::codes::{self, LT};
use crate::content::encode;
use crate::{flips, truncations};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptor::Raptor;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::{FecScheme, Oti};
use fontana_wire::{
    ContentEncoding, Fdt, FdtContentEncoding, FdtError, FdtFile, FdtLimits, FdtMd5, FdtReading,
    FluteVersion, InvalidEntry, NtpSeconds, Toi,
};
use proptest::prelude::*;

fn parse(xml: &str) -> Result<Fdt, FdtError> {
    Fdt::parse(xml.as_bytes())
}

/// An instance with one file that has these attributes.
fn one(instance: &str, file: &str) -> Result<FdtFile, FdtError> {
    let xml = format!(
        r#"<FDT-Instance Expires="1" {instance}><File TOI="1" Content-Location="x" {file}/></FDT-Instance>"#
    );
    parse(&xml).map(|fdt| fdt.files[0].clone())
}

fn is_value(result: &Result<FdtFile, FdtError>, name: &str) -> bool {
    matches!(result, Err(FdtError::Value { attribute, .. }) if *attribute == name)
}

#[test]
fn namespaces_and_unknown_elements_are_ignored() {
    let bodies = [
        r#"<FDT-Instance xmlns="urn:ietf:params:xml:ns:fdt" Expires="5"><File TOI="1" Content-Location="x"/></FDT-Instance>"#,
        r#"<FDT-Instance xmlns="urn:IETF:metadata:2005:FLUTE:FDT" Expires="5"><File TOI="1" Content-Location="x"></File></FDT-Instance>"#,
        r#"<FDT-Instance Expires="5"><File TOI="1" Content-Location="x"/></FDT-Instance>"#,
        r#"<?xml version="1.0"?><!-- a comment --><f:FDT-Instance xmlns:f="http://www.example.com/flute" Expires=" 5 ">
            <f:File TOI="1" Content-Location="x"><e:Group xmlns:e="e"><File TOI="7"/>text &amp; &unknown;</e:Group></f:File>
            <e:File-like Expires="no"/><![CDATA[<File/>]]>
           </f:FDT-Instance>"#,
        r#"<FDT-Instance Expires='5' x:Complete="maybe" Later="1"><File x:TOI="9" TOI='1' Content-Location='x'/><Other TOI="a"/></FDT-Instance>"#,
    ];
    let expected = Fdt {
        expires: NtpSeconds(5),
        complete: false,
        files: vec![FdtFile {
            toi: Toi(1),
            content_location: "x".to_owned(),
            ..FdtFile::default()
        }],
    };
    for body in bodies {
        assert_eq!(parse(body), Ok(expected.clone()), "{body}");
    }
}

#[test]
fn the_files_own_attributes_win_over_the_instances_one_by_one() {
    let instance = r#"Content-Type="text/plain" Content-Encoding="gzip" FEC-OTI-FEC-Encoding-ID="0"
        FEC-OTI-Encoding-Symbol-Length="100" FEC-OTI-Maximum-Source-Block-Length="10""#;
    let no_code = |length, size, blocks| {
        Some(Oti {
            transfer_length: length,
            symbol_size: size,
            scheme: FecScheme::NoCode(NoCode { max_source_block_length: blocks }),
        })
    };
    let gzip = Some(FdtContentEncoding::Known(ContentEncoding::Gzip));
    let file = one(instance, r#"Transfer-Length="7""#).unwrap();
    assert_eq!(file.content_type.as_deref(), Some("text/plain"));
    assert_eq!(file.content_encoding, gzip);
    assert_eq!(file.oti, no_code(7, 100, 10));
    let own = r#"Transfer-Length="7" Content-Type="a/b" Content-Encoding="br" FEC-OTI-Encoding-Symbol-Length="50""#;
    let file = one(instance, own).unwrap();
    assert_eq!(file.content_type.as_deref(), Some("a/b"));
    assert_eq!(file.content_encoding, Some(FdtContentEncoding::Unknown("br".to_owned())));
    assert_eq!(file.oti, no_code(7, 50, 10));
}

#[test]
fn the_transfer_length_is_the_content_length_of_what_is_not_encoded() {
    let length = |file| one("", file).unwrap().transfer_length;
    assert_eq!(length(r#"Content-Length="7""#), Some(7));
    assert_eq!(length(r#"Content-Length="7" Content-Encoding="null""#), Some(7));
    assert_eq!(length(r#"Content-Length="7" Content-Encoding="gzip""#), None);
    assert_eq!(
        length(r#"Content-Length="7" Content-Encoding="gzip" Transfer-Length="5""#),
        Some(5)
    );
    assert_eq!(length(r#"FEC-OTI-Transfer-Length="5""#), Some(5));
    assert_eq!(length(r#"FEC-OTI-Transfer-Length="5" Transfer-Length="5""#), Some(5));
    let differ = one("", r#"FEC-OTI-Transfer-Length="5" Transfer-Length="6""#);
    assert!(is_value(&differ, "Transfer-Length"));
}

#[test]
fn transmission_information_is_there_when_all_of_it_was_given() {
    let raptorq = r#"FEC-OTI-FEC-Encoding-ID="6" FEC-OTI-Encoding-Symbol-Length="64""#;
    let info = r#"FEC-OTI-Scheme-Specific-Info="AgABBA==""#;
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 2, sub_blocks: 1, alignment: 4 });
    let oti = Some(Oti { transfer_length: 700, symbol_size: 64, scheme });
    let file = |attributes: &str| one(attributes, r#"Transfer-Length="700""#);
    assert_eq!(file(&format!("{raptorq} {info}")).unwrap().oti, oti);
    assert_eq!(file(raptorq).unwrap().oti, None);
    assert_eq!(one(&format!("{raptorq} {info}"), "").unwrap().oti, None);
    assert_eq!(file(r#"FEC-OTI-FEC-Encoding-ID="5""#).unwrap().fec_encoding_id, Some(5));
    let short = file(&format!(r#"{raptorq} FEC-OTI-Scheme-Specific-Info="AgAB""#));
    assert!(is_value(&short, "FEC-OTI-Scheme-Specific-Info"));
    // Reed-Solomon has instances under ID 129; without an instance id it is that of RFC 5510.
    let limits = r#"FEC-OTI-Maximum-Source-Block-Length="60" FEC-OTI-Encoding-Symbol-Length="64""#;
    let n = r#"FEC-OTI-Max-Number-of-Encoding-Symbols="64""#;
    for (id, code) in [
        (r#""5""#, Some(ReedSolomonCode::Rfc5510)),
        (r#""129""#, Some(ReedSolomonCode::SmallBlock)),
        (r#""129" FEC-OTI-FEC-Instance-ID="0""#, Some(ReedSolomonCode::SmallBlock)),
        (r#""129" FEC-OTI-FEC-Instance-ID="1""#, Some(ReedSolomonCode::Cauchy)),
        (r#""129" FEC-OTI-FEC-Instance-ID="2""#, Some(ReedSolomonCode::Cauchy16)),
        (r#""129" FEC-OTI-FEC-Instance-ID="3""#, None),
        (r#""129" FEC-OTI-FEC-Instance-ID="65536""#, None),
    ] {
        let id = format!("FEC-OTI-FEC-Encoding-ID={id}");
        let (max_source_block_length, max_encoding_symbols) = (60, 64);
        let oti = code.map(|code| Oti {
            transfer_length: 700,
            symbol_size: 64,
            scheme: FecScheme::ReedSolomon(ReedSolomon {
                code,
                max_source_block_length,
                max_encoding_symbols,
            }),
        });
        assert_eq!(file(&format!("{id} {limits} {n}")).unwrap().oti, oti, "{id}");
        assert_eq!(file(&format!("{id} {limits}")).unwrap().oti, None, "{id}");
    }
    let large = r#"FEC-OTI-FEC-Encoding-ID="6" FEC-OTI-Encoding-Symbol-Length="65536""#;
    assert!(is_value(&file(&format!("{large} {info}")), "FEC-OTI-Encoding-Symbol-Length"));
}

/// 3GPP TS 26.346 has three attributes for the numbers of Raptor instead of
/// FEC-OTI-Scheme-Specific-Info. Those of the file come first, then those of the instance.
#[test]
fn raptor_has_its_numbers_in_the_information_or_in_the_attributes_of_3gpp() {
    let raptor = r#"FEC-OTI-FEC-Encoding-ID="1" FEC-OTI-Encoding-Symbol-Length="140""#;
    let info = r#"FEC-OTI-Scheme-Specific-Info="AAICBA==""#;
    let numbers = |z: &str, n: &str| {
        format!(
            r#"FEC-OTI-Number-Of-Source-Blocks="{z}" FEC-OTI-Number-Of-Sub-Blocks="{n}"
                FEC-OTI-Symbol-Alignment-Parameter="4""#
        )
    };
    let oti = |source_blocks, sub_blocks| {
        let scheme = FecScheme::Raptor(Raptor { source_blocks, sub_blocks, alignment: 4 });
        Some(Oti { transfer_length: 100_000, symbol_size: 140, scheme })
    };
    let file = |instance: &str, own: &str| {
        one(instance, &format!(r#"Transfer-Length="100000" {own}"#)).map(|file| file.oti)
    };
    assert_eq!(file("", &format!("{raptor} {info}")), Ok(oti(2, 2)));
    assert_eq!(file("", &format!("{raptor} {}", numbers("300", "1"))), Ok(oti(300, 1)));
    assert_eq!(file(&format!("{raptor} {}", numbers("5", "1")), ""), Ok(oti(5, 1)));
    assert_eq!(file(&format!("{raptor} {}", numbers("5", "1")), &numbers("6", "2")), Ok(oti(6, 2)));
    assert_eq!(file(&format!("{raptor} {info}"), &numbers("6", "2")), Ok(oti(6, 2)));
    assert_eq!(file(&format!("{raptor} {}", numbers("5", "1")), info), Ok(oti(2, 2)));
    // Attributes of the instance for another code and symbol size are overridden.
    let instance = r#"FEC-OTI-FEC-Encoding-ID="0" FEC-OTI-Encoding-Symbol-Length="1436"
        FEC-OTI-Maximum-Source-Block-Length="64""#;
    assert_eq!(file(instance, &format!("{raptor} {}", numbers("1", "1"))), Ok(oti(1, 1)));
    // Without all three the numbers are not known, and other codes do not have them.
    assert_eq!(file("", &format!(r#"{raptor} FEC-OTI-Number-Of-Source-Blocks="1""#)), Ok(None));
    let raptorq = r#"FEC-OTI-FEC-Encoding-ID="6" FEC-OTI-Encoding-Symbol-Length="140""#;
    assert_eq!(file("", &format!("{raptorq} {}", numbers("1", "1"))), Ok(None));
    for (z, n, name) in [
        ("65536", "1", "FEC-OTI-Number-Of-Source-Blocks"),
        ("1", "256", "FEC-OTI-Number-Of-Sub-Blocks"),
    ] {
        assert!(is_value(&one("", &format!("{raptor} {}", numbers(z, n))), name), "{name}");
    }
}

#[test]
fn a_content_md5_that_is_none_does_not_make_the_table_invalid() {
    let md5 = |text: &str| one("", &format!(r#"Content-MD5="{text}""#)).unwrap().content_md5;
    assert_eq!(md5("AAAAAAAAAAAAAAAAAAAAAA=="), Some(FdtMd5::Digest([0; 16])));
    // The last one is that of a deployed sender.
    let sent =
        "9AtVUb1TKJLSp_bfX-ZkEAAAAAAAAAAAYBw_kBh_AAABAAAAAAAAAID_________kJ7iTZRVAACQxgDL_38AAA..";
    for text in ["AAAA", "not base64", "", sent] {
        let shown = text.chars().take(80).collect();
        assert_eq!(md5(text), Some(FdtMd5::Invalid(shown)));
    }
}

#[test]
fn values_that_are_not_of_their_type_are_refused() {
    let cases = [
        ("Content-Length", "-1"),
        ("Content-Length", "+1"),
        ("Content-Length", ""),
        ("Content-Length", "1e3"),
        ("Content-Length", "18446744073709551616"),
        ("Transfer-Length", "0x10"),
        ("Content-Type", "&undefined;"),
        ("FEC-OTI-FEC-Encoding-ID", "256"),
    ];
    for (name, value) in cases {
        assert!(is_value(&one("", &format!(r#"{name}="{value}""#)), name), "{name}={value}");
    }
    for toi in ["0", "5192296858534827628530496329220096", "x", ""] {
        let xml = format!(
            r#"<FDT-Instance Expires="1"><File TOI="{toi}" Content-Location="x"/></FDT-Instance>"#
        );
        assert!(is_value(&parse(&xml).map(|fdt| fdt.files[0].clone()), "TOI"), "{toi}");
    }
    let largest = r#"<FDT-Instance Expires="1"><File TOI="5192296858534827628530496329220095" Content-Location="x"/></FDT-Instance>"#;
    assert_eq!(parse(largest).unwrap().files[0].toi, Toi::MAX);
    for (value, complete) in [("true", true), ("1", true), ("false", false), ("0", false)] {
        let xml = format!(r#"<FDT-Instance Expires="1" Complete="{value}"/>"#);
        assert_eq!(parse(&xml).unwrap().complete, complete);
    }
    assert!(parse(r#"<FDT-Instance Expires="1" Complete="yes"/>"#).is_err());
}

#[test]
fn required_attributes_occur_exactly_once() {
    let missing = |element, attribute| Err(FdtError::Missing { element, attribute });
    assert_eq!(parse("<FDT-Instance/>"), missing("FDT-Instance", "Expires"));
    let file = |attributes: &str| {
        parse(&format!(r#"<FDT-Instance Expires="1"><File {attributes}/></FDT-Instance>"#))
    };
    assert_eq!(file(r#"Content-Location="x""#), missing("File", "TOI"));
    assert_eq!(file(r#"TOI="1""#), missing("File", "Content-Location"));
    assert!(matches!(file(r#"TOI="1" TOI="1" Content-Location="x""#), Err(FdtError::Xml { .. })));
    let twice = file(r#"TOI="1" Content-Location="x"/><File TOI="01" Content-Location="y""#);
    assert_eq!(twice, Err(FdtError::RepeatedToi(Toi(1))));
    for other in ["", " ", "<File/>", "<FDT Expires='1'/>", "text"] {
        assert_eq!(parse(other), Err(FdtError::Root), "{other}");
    }
    let two = r#"<FDT-Instance Expires="1"/><FDT-Instance Expires="1"/>"#;
    assert_eq!(parse(two), Err(FdtError::Root));
}

#[test]
fn invalid_entries_are_named_and_the_others_read() {
    let read = |files: &str| {
        let xml = format!(r#"<FDT-Instance Expires="1" Complete="1">{files}</FDT-Instance>"#);
        Fdt::read(ContentEncoding::Null, xml.as_bytes(), &FdtLimits::default()).unwrap()
    };
    let good = r#"<File TOI="7" Content-Location="good"/>"#;
    for (bad, name) in [
        (r#"<File TOI="0" Content-Location="bad"/>"#, Some("bad")),
        (r#"<File Content-Length="-1" TOI="1" Content-Location="bad"/>"#, Some("bad")),
        (r#"<File TOI="1"/>"#, None),
        (r#"<File Content-Location="bad"/>"#, Some("bad")),
        (r#"<File TOI="1" Content-Location="bad" Content-Length="x"/>"#, Some("bad")),
        (r#"<File TOI="7" Content-Location="again"/>"#, Some("again")),
    ] {
        let FdtReading { fdt, invalid } = read(&format!("{good}{bad}"));
        assert!(fdt.complete && fdt.files.len() == 1, "{bad}");
        assert_eq!(fdt.files[0].content_location, "good");
        assert_eq!(invalid.len(), 1, "{bad}");
        assert_eq!(invalid[0].content_location.as_deref(), name, "{bad}");
    }
    // An invalid entry does not keep a valid one of the same TOI out.
    let both = read(
        r#"<File TOI="7" Content-Location="a" Content-Length="x"/><File TOI="7" Content-Location="b"/>"#,
    );
    assert_eq!(both.fdt.files[0].content_location, "b");
    let many = read(&format!("{}{good}", r#"<File TOI="0"/>"#.repeat(1_000)));
    assert_eq!((many.fdt.files.len(), many.invalid.len()), (1, InvalidEntry::MAX));
}

#[test]
fn documents_that_attack_the_parser_are_refused() {
    let entities =
        r#"<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><FDT-Instance Expires="1"/>"#;
    assert_eq!(parse(entities), Err(FdtError::DocumentType));
    assert_eq!(Fdt::parse(b"<FDT-Instance Expires='\xff'/>"), Err(FdtError::Encoding));
    for broken in [
        "<FDT-Instance Expires='1'>",
        "<FDT-Instance Expires='1'></File>",
        "<",
        "<FDT-Instance Expires=1/>",
    ] {
        assert!(matches!(parse(broken), Err(FdtError::Xml { .. })), "{broken}");
    }
}

#[test]
fn values_that_every_file_inherits_are_short() {
    let value = |name: &str, size: usize| {
        let instance = format!(r#"{name}="{}""#, "A".repeat(size));
        one(&instance, "").map(|_| ())
    };
    for name in ["Content-Type", "Content-Encoding"] {
        assert_eq!(value(name, 255), Ok(()));
        assert!(matches!(value(name, 256), Err(FdtError::Value { .. })));
    }
    assert_eq!(value("FEC-OTI-Scheme-Specific-Info", 252), Ok(()));
    assert!(value("FEC-OTI-Scheme-Specific-Info", 256).is_err());
    // A file's own name may be longer, because it is stored once.
    let location = format!("x{}", "y".repeat(10_000));
    let xml = format!(
        r#"<FDT-Instance Expires="1"><File TOI="1" Content-Location="{location}"/></FDT-Instance>"#
    );
    assert_eq!(parse(&xml).unwrap().files[0].content_location, location);
}

#[test]
fn compressed_tables_are_read_and_bombs_are_not() {
    let xml = sample().emit(FluteVersion::V2);
    let limits = FdtLimits::default();
    for cenc in 0..4 {
        let encoding = ContentEncoding::from_cenc(cenc).unwrap();
        let bytes = encode(encoding, &xml);
        assert_eq!(Fdt::parse_encoded(encoding, &bytes, &limits), Ok(sample()));
        let bomb = encode(encoding, &vec![b' '; 9 << 20]);
        let result = Fdt::parse_encoded(encoding, &bomb, &limits);
        assert!(matches!(result, Err(FdtError::ContentEncoding(_))));
    }
}

#[test]
fn errors_quote_received_text_escaped() {
    let documents = [
        "<FDT-Instance Expires='1'></\x1b[2J>",
        "<FDT-Instance Expires='1'><\x1b[2J></FDT-Instance>",
        "<FDT-Instance Expires='\x1b[2J'/>",
        "<FDT-Instance Expires='1' \x1b[2J='1' \x1b[2J='1'/>",
    ];
    for xml in documents {
        let message = parse(xml).unwrap_err().to_string();
        assert!(!message.contains(char::is_control), "{message:?}");
        assert!(message.len() < 300);
    }
}

#[test]
fn every_limit_holds_at_its_edge() {
    let limits = FdtLimits { files: 2, attributes: 4, depth: 3, ..FdtLimits::default() };
    let parse = |body: &str| {
        let xml = format!(r#"<FDT-Instance Expires="1">{body}</FDT-Instance>"#);
        Fdt::parse_with(xml.as_bytes(), &limits).map(|_| ())
    };
    let file = |toi: u32| format!(r#"<File TOI="{toi}" Content-Location="x"/>"#);
    let over = |what, limit| Err(FdtError::Limit { what, limit });
    assert_eq!(parse(&(file(1) + &file(2))), Ok(()));
    assert_eq!(parse(&(file(1) + &file(2) + &file(3))), over("files", 2));
    assert_eq!(parse(r#"<File TOI="1" Content-Location="x" a="" b=""/>"#), Ok(()));
    assert_eq!(
        parse(r#"<File TOI="1" Content-Location="x" a="" b="" c=""/>"#),
        over("attributes", 4)
    );
    assert_eq!(parse("<a><b></b></a>"), Ok(()));
    assert_eq!(parse("<a><b><c></c></b></a>"), over("nested elements", 3));
    let xml = r#"<FDT-Instance Expires="1"/>"#;
    let exact = FdtLimits { decoded_bytes: xml.len(), ..limits };
    assert!(Fdt::parse_with(xml.as_bytes(), &exact).is_ok());
    let tight = FdtLimits { decoded_bytes: xml.len() - 1, ..limits };
    assert_eq!(
        Fdt::parse_with(xml.as_bytes(), &tight),
        over("bytes", xml.len() - 1).map(|()| Fdt::default())
    );
}

#[test]
fn a_megabyte_of_attributes_or_of_open_elements_is_refused_at_once() {
    let attributes: String = (0..100_000).map(|i| format!(" a{i}=''")).collect();
    assert!(matches!(
        parse(&format!("<FDT-Instance Expires='1'{attributes}/>")),
        Err(FdtError::Limit { what: "attributes", .. })
    ));
    let deep = format!("<FDT-Instance Expires='1'>{}", "<a>".repeat(300_000));
    assert!(matches!(parse(&deep), Err(FdtError::Limit { what: "nested elements", .. })));
}

fn sample() -> Fdt {
    Fdt {
        expires: NtpSeconds(3_976_218_000),
        complete: true,
        files: vec![FdtFile {
            toi: Toi(1),
            content_location: "a/<b>&\"c'.bin".to_owned(),
            content_length: Some(500),
            transfer_length: Some(500),
            content_md5: Some(FdtMd5::Digest([7; 16])),
            ..FdtFile::default()
        }],
    }
}

#[test]
fn no_truncation_or_flipped_bit_panics() {
    let xml = sample().emit(FluteVersion::V2);
    assert_eq!(Fdt::parse(&xml), Ok(sample()));
    // The last byte is the newline after the end.
    for cut in truncations(&xml[..xml.len() - 1]) {
        assert!(Fdt::parse(cut).is_err());
    }
    for flipped in flips(&xml) {
        let _ = Fdt::parse(&flipped);
    }
}

#[test]
fn characters_that_xml_cannot_carry_are_replaced() {
    let mut fdt = sample();
    fdt.files[0].content_location = "a\u{1}\u{ffff}b\t\n".to_owned();
    let read = Fdt::parse(&fdt.emit(FluteVersion::V2)).unwrap();
    assert_eq!(read.files[0].content_location, "a\u{fffd}\u{fffd}b\t\n");
}

const REED_SOLOMON: [ReedSolomonCode; 4] = [
    ReedSolomonCode::Rfc5510,
    ReedSolomonCode::SmallBlock,
    ReedSolomonCode::Cauchy,
    ReedSolomonCode::Cauchy16,
];

fn tables() -> impl Strategy<Value = Fdt> {
    let oti = prop_oneof![
        (any::<u64>(), any::<u16>(), any::<u32>()).prop_map(|(length, size, blocks)| Oti {
            transfer_length: length,
            symbol_size: size,
            scheme: FecScheme::NoCode(NoCode { max_source_block_length: blocks }),
        }),
        (any::<u64>(), any::<u16>(), any::<(u8, u16, u8)>()).prop_map(
            |(length, size, (source_blocks, sub_blocks, alignment))| Oti {
                transfer_length: length,
                symbol_size: size,
                scheme: FecScheme::RaptorQ(RaptorQ { source_blocks, sub_blocks, alignment }),
            }
        ),
        (any::<u64>(), any::<u16>(), any::<(u16, u8, u8)>()).prop_map(
            |(length, size, (source_blocks, sub_blocks, alignment))| Oti {
                transfer_length: length,
                symbol_size: size,
                scheme: FecScheme::Raptor(Raptor { source_blocks, sub_blocks, alignment }),
            }
        ),
        (any::<u64>(), any::<u16>(), any::<(u16, u16)>(), 0..4_usize).prop_map(
            |(length, size, (max_source_block_length, max_encoding_symbols), code)| Oti {
                transfer_length: length,
                symbol_size: size,
                scheme: FecScheme::ReedSolomon(ReedSolomon {
                    code: REED_SOLOMON[code],
                    max_source_block_length,
                    max_encoding_symbols,
                }),
            }
        ),
        (any::<u64>(), any::<u16>(), codes::schemes()).prop_map(
            |(transfer_length, symbol_size, scheme)| Oti { transfer_length, symbol_size, scheme },
        ),
    ];
    let encoding = prop_oneof![
        Just(FdtContentEncoding::Known(ContentEncoding::Gzip)),
        Just(FdtContentEncoding::Known(ContentEncoding::Deflate)),
        "[a-z]{1,3}".prop_map(FdtContentEncoding::Unknown),
    ];
    let text = "[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\u{fffe}\u{ffff}]{0,12}";
    let file = (
        (1..=Toi::MAX.0, text, any::<Option<u64>>(), any::<Option<u64>>()),
        (prop::option::of(text), prop::option::of(encoding), any::<Option<[u8; 16]>>()),
        prop::option::of(oti),
    )
        .prop_map(|((toi, content_location, content_length, transfer_length), rest, oti)| {
            let (content_type, content_encoding, content_md5) = rest;
            let transfer_length = oti.map(|oti| oti.transfer_length).or(transfer_length);
            let default = content_length.filter(|_| content_encoding.is_none());
            FdtFile {
                toi: Toi(toi),
                content_location,
                content_length,
                transfer_length: transfer_length.or(default),
                content_type,
                content_encoding,
                content_md5: content_md5.map(FdtMd5::Digest),
                fec_encoding_id: oti.map(|oti| oti.scheme.profile().encoding_id.0),
                oti,
            }
        });
    (any::<u32>(), any::<bool>(), prop::collection::vec(file, 0..5)).prop_map(
        |(expires, complete, mut files)| {
            files.sort_by_key(|file| file.toi);
            files.dedup_by_key(|file| file.toi);
            Fdt { expires: NtpSeconds(expires), complete, files }
        },
    )
}

/// An LT object is described by instance, block length and scheme-specific information.
#[test]
fn a_table_describes_tornado_and_lt_by_instance_and_information() {
    let file = FdtFile { toi: Toi(1), oti: Some(LT), ..FdtFile::default() };
    let xml = Fdt { files: vec![file], ..Fdt::default() }.emit(FluteVersion::V2);
    let xml = String::from_utf8(xml).unwrap();
    let information = r#"FEC-OTI-Scheme-Specific-Info="AAAAAAAAAAAHAAABUQAdtb8DGyQl""#;
    assert!(xml.contains(information) && xml.contains(r#"FEC-OTI-FEC-Instance-ID="2""#), "{xml}");
    assert_eq!(parse(&xml).unwrap().files[0].oti, Some(LT));
    let read = |from: &str, to: &str| parse(&xml.replace(from, to)).map(|fdt| fdt.files[0].oti);
    assert_eq!(read(information, ""), Ok(None));
    assert_eq!(read(r#"FEC-OTI-FEC-Instance-ID="2""#, ""), Ok(None));
    assert_eq!(read(r#"Instance-ID="2""#, r#"Instance-ID="3""#), Ok(None));
    // The information of the other code, and an unknown profile.
    for (from, to) in
        [(r#"Instance-ID="2""#, r#"Instance-ID="1""#), (r#"Info="AAAA"#, r#"Info="AgAA"#)]
    {
        let Err(FdtError::Value { attribute, .. }) = read(from, to) else { panic!("{to}") };
        assert_eq!(attribute, "FEC-OTI-Scheme-Specific-Info");
    }
}

proptest! {
    #[test]
    fn every_table_is_read_back(fdt in tables()) {
        prop_assert_eq!(Fdt::parse(&fdt.emit(FluteVersion::V2)), Ok(fdt));
    }
}
