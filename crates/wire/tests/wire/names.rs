//! Names and keys as text: paths, Content-Locations, escaping for display.

use fontana_wire::{
    Hash, HexError, KeyError, PathError, Printable, PublicKey, RelativePath, SecretKey,
    emit_content_location, parse_content_location,
};
use proptest::prelude::*;

#[test]
fn paths_stay_below_their_directory() {
    let error = |path: &[u8]| RelativePath::new(path).unwrap_err();
    assert_eq!(error(b""), PathError::Empty);
    assert_eq!(error(b"/"), PathError::Absolute);
    assert_eq!(error(b"/etc/passwd"), PathError::Absolute);
    assert_eq!(error(b"."), PathError::Dot);
    assert_eq!(error(b"a/./b"), PathError::Dot);
    assert_eq!(error(b".."), PathError::DotDot);
    assert_eq!(error(b"a/../b"), PathError::DotDot);
    assert_eq!(error(b"a//b"), PathError::EmptyComponent);
    assert_eq!(error(b"a/"), PathError::EmptyComponent);
    assert_eq!(error(b"a\0"), PathError::Nul);
    for good in
        [&b"a"[..], b"...", b"..a", b".a/b..", b"a b", b"\x1b[2J", b"\xff\xfe", b"a\\b", b"CON"]
    {
        assert_eq!(RelativePath::new(good).unwrap().as_bytes(), good);
    }
}

#[test]
fn components_of_255_bytes_and_paths_of_32_components_are_the_longest() {
    assert!(RelativePath::new([b'x'; 255]).is_ok());
    assert_eq!(RelativePath::new([b'x'; 256]), Err(PathError::ComponentSize { actual: 256 }));
    let deep = |depth: usize| RelativePath::from_components(vec!["x"; depth]);
    assert_eq!(deep(32).unwrap().components().count(), RelativePath::MAX_DEPTH);
    assert_eq!(deep(33), Err(PathError::Depth { limit: 32 }));
    assert_eq!(deep(0), Err(PathError::Empty));
    assert_eq!(RelativePath::from_components(["a/b"]), Err(PathError::Slash));
    assert_eq!(RelativePath::from_components(["", "a"]), Err(PathError::EmptyComponent));
}

#[test]
fn is_below_compares_components() {
    let path = |text: &str| RelativePath::new(text).unwrap();
    assert!(path("a/b").is_below(&path("a")));
    assert!(path("a/b/c").is_below(&path("a")));
    assert!(!path("ab").is_below(&path("a")));
    assert!(!path("a").is_below(&path("a")));
    assert!(!path("a").is_below(&path("a/b")));
    assert!(path("a/z") < path("a-"));
}

#[test]
fn a_content_location_becomes_the_path_of_its_uri() {
    let cases = [
        ("file:///a/b.bin", "a/b.bin"),
        ("http://example.org/x/y.html#fragment", "x/y.html"),
        ("http://example.org/x/y.html?query=../..#fragment", "x/y.html%3Fquery=..%2F.%2E"),
        ("get?id=1", "get%3Fid=1"),
        ("get?id=2&a=%20b", "get%3Fid=2&a=%20b"),
        ("get/?C:\\x", "get/%3FC%3A%5Cx"),
        ("urn:a:1", "urn%3Aa%3A1"),
        ("URN:a:2/b", "urn%3Aa%3A2/b"),
        ("urn:uuid:f81d4fae-7dec", "urn%3Auuid%3Af81d4fae-7dec"),
        ("tag:example.org,2026:x", "tag%3Aexample.org,2026%3Ax"),
        ("http://user@example.org:80/x", "x"),
        ("//host/x", "x"),
        ("a%20b/c%C3%A9", "a b/cé"),
        ("100%", "100%"),
        ("%zz%4", "%zz%4"),
        ("%2541", "%41"),
        ("./a//b/./c/", "a/b/c"),
        ("a\\b", "a/b"),
        ("cid:part.1", "part.1"),
        (".hidden", ".hidden"),
        ("COM10.txt/COMMON", "COM10.txt/COMMON"),
    ];
    for (location, expected) in cases {
        let path = parse_content_location(location).unwrap();
        assert_eq!(path.as_bytes(), expected.as_bytes(), "{location}");
    }
}

#[test]
fn a_content_location_that_leads_elsewhere_is_refused() {
    let dotdot = [
        "urn:a/../b",
        "../x",
        "a/../b",
        "%2e%2e/x",
        "..%2fx",
        "a\\..\\b",
        "file:///../x",
        "..%5cx",
    ];
    for location in dotdot {
        assert_eq!(parse_content_location(location), Err(PathError::DotDot), "{location}");
    }
    for location in ["", "/", "http://example.org", "http://example.org/", "?a", "#a", ".", "//"] {
        assert_eq!(parse_content_location(location), Err(PathError::Empty), "{location}");
    }
    assert_eq!(parse_content_location("a%00b"), Err(PathError::Nul));
    let unportable = [
        "a%0Ab",
        "%1b[2J",
        "%7F",
        "C:/x",
        "c:x",
        "a/b:stream",
        "con",
        "CON.txt",
        "a/Nul",
        "aux.",
        "COM1",
        "lpt9.log",
        "COM²",
        "CONIN$",
        "a.",
        "a%20",
        "%ff",
        "%C2%85",
    ];
    for location in unportable {
        let error = parse_content_location(location).unwrap_err();
        assert!(matches!(error, PathError::NotPortable(_)), "{location}: {error}");
    }
    let long = "x".repeat(256);
    assert_eq!(parse_content_location(&long), Err(PathError::ComponentSize { actual: 256 }));
    let deep = "x/".repeat(33);
    assert_eq!(parse_content_location(&deep), Err(PathError::Depth { limit: 32 }));
}

#[test]
fn displayed_names_contain_no_terminal_controls() {
    let cases: [(&[u8], &str); 9] = [
        (b"plain name.txt", "plain name.txt"),
        ("日本語 é e\u{301}".as_bytes(), "日本語 é e\u{301}"),
        (b"\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}"),
        (b"a\nb\rc\td", "a\\u{a}b\\u{d}c\\u{9}d"),
        ("\u{9b}31m".as_bytes(), "\\u{9b}31m"),
        ("evil\u{202e}gpj.exe".as_bytes(), "evil\\u{202e}gpj.exe"),
        (
            "a\u{200b}b\u{feff}\u{2066}\u{e0041}".as_bytes(),
            "a\\u{200b}b\\u{feff}\\u{2066}\\u{e0041}",
        ),
        (b"\xff\xc3(", "\\xff\\xc3("),
        (b"back\\slash", "back\\\\slash"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(Printable(bytes).to_string(), expected);
        if !bytes.contains(&b'/') {
            assert_eq!(RelativePath::new(bytes).unwrap().to_string(), expected);
        }
    }
}

#[test]
fn keys_and_hashes_have_one_text_form_and_take_two() {
    let hash = Hash([0xAB; 32]);
    assert_eq!(hash.to_string(), "ab".repeat(32));
    assert_eq!("AB".repeat(32).parse(), Ok(hash));
    assert_eq!("ab".parse::<Hash>(), Err(HexError::Length { actual: 2 }));
    let bad = format!("{}g{}", "a".repeat(40), "a".repeat(23));
    assert_eq!(bad.parse::<Hash>(), Err(HexError::Digit { position: 41 }));
    // 64 bytes, not 64 characters.
    assert_eq!("é".repeat(32).parse::<Hash>(), Err(HexError::Digit { position: 1 }));

    let secret = SecretKey::from_seed(&[7; 32]);
    let public = secret.public_key();
    assert_eq!(public.to_string().parse(), Ok(public));
    assert_eq!(PublicKey::from_bytes(&public.to_bytes()), Ok(public));
    let text = secret.to_file_text();
    assert_eq!(text, format!("fontana-secret-key-1 {}\n", "07".repeat(32)));
    assert_eq!(text.parse::<SecretKey>().unwrap().public_key(), public);
    assert!(!format!("{secret:?}").contains("0707"));
    assert_eq!(text.parse::<PublicKey>(), Err(KeyError::Secret));
    assert_eq!("07".repeat(32).parse::<SecretKey>().unwrap_err(), KeyError::Prefix);
    // The neutral element of the curve has small order.
    let mut weak = [0; 32];
    weak[0] = 1;
    assert_eq!(PublicKey::from_bytes(&weak), Err(KeyError::NotAKey));
}

proptest! {
    #[test]
    fn a_portable_path_is_read_back_from_its_content_location(names in prop::collection::vec("[a-zé %&?#\"<>]{0,8}[a-z]", 1..5)) {
        let path = RelativePath::from_components(&names).unwrap();
        prop_assume!(names.iter().all(|name| !matches!(name.as_str(), "con" | "nul" | "aux" | "prn")));
        prop_assert_eq!(parse_content_location(&emit_content_location(&path)), Ok(path));
    }

    #[test]
    fn any_content_location_gives_a_valid_path_or_an_error(location: String) {
        if let Ok(path) = parse_content_location(&location) {
            prop_assert!(path.components().all(|name| !matches!(name, b"" | b"." | b"..")));
        }
    }

    #[test]
    fn different_names_look_different(a: Vec<u8>, b: Vec<u8>) {
        prop_assert_eq!(a == b, Printable(&a).to_string() == Printable(&b).to_string());
    }

    #[test]
    fn the_order_of_paths_is_that_of_their_components(a in "[a-c/.-]{1,6}", b in "[a-c/.-]{1,6}") {
        if let (Ok(left), Ok(right)) = (RelativePath::new(&a), RelativePath::new(&b)) {
            let components = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(left.cmp(&right), components(&a).cmp(&components(&b)));
        }
    }
}
