//! Tickets: one text per ticket, and errors that say what to change.

use crate::truncations;
use fontana_wire::{
    ChannelGroups, ForeignFormat, Hash, MAX_CHANNELS, SecretKey, Ticket, TicketError, TicketSecret,
    Tsi, WebAddress, WebTicket, WebTicketError,
};
use proptest::prelude::*;
use std::net::IpAddr;
use std::num::NonZeroU16;

const KEY: &str = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c";
const SECRET: &str = "AAECAwQFBgcICQoLDA0ODw";
const HASH: &str = "2222222222222222222222222222222222222222222222222222222222222222";

fn parse(text: &str) -> Result<Ticket, TicketError> {
    text.parse()
}

fn message(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn tickets_are_read_back_unchanged() {
    let texts = [
        "fontana://239.255.77.1:7701/1".to_owned(),
        "fontana://10.0.0.7@232.1.2.3:7701/0".to_owned(),
        "fontana://10.0.0.7,10.0.0.8@232.1.2.3:65535/281474976710655".to_owned(),
        "fontana://[ff3e::8000:1]:1/5".to_owned(),
        "fontana://[2001:db8::1],[2001:db8::2]@[ff3e::8000:1]:7701/5".to_owned(),
        "fontana://255.255.255.255:7701/5".to_owned(),
        "fontana://127.0.0.1:7701/5".to_owned(),
        format!("fontana://239.255.77.1:7701/1?key={KEY}"),
        format!("fontana://239.255.77.1:7701/1?manifest={HASH}"),
        format!("fontana://239.255.77.1:7701/1?key={KEY}&manifest={HASH}"),
        format!("fontana://239.255.77.1:7701/1?key={KEY}&secret={SECRET}"),
        format!("fontana://[ff15::1]:7701/1?secret={SECRET}&ask=65535&near=[fd00::7]"),
        "fontana://239.255.77.1:7701/1?channels=2".to_owned(),
        format!("fontana://[ff15::1]:7701/1?manifest={HASH}&channels=64"),
        "fontana://239.255.77.1:7701/1?groups=239.1.2.3".to_owned(),
        format!("fontana://[ff15::1]:7701/1?key={KEY}&groups=[ff15::8],[ff15::2]"),
        format!("fontana://[ff15::1]:7701/1?manifest={HASH}&near=[fd00::7]&channels=2"),
        "fontana://239.255.77.1:7701/1?near=10.0.0.7&format=flute".to_owned(),
        "fontana://239.255.77.1:7701/1?format=fcast".to_owned(),
        "fontana://239.255.77.1:7701/1?web=https://a.example/x/&web=http://[::1]:80/".to_owned(),
    ];
    for text in texts {
        assert_eq!(parse(&text).unwrap().to_string(), text);
    }
}

#[test]
fn a_ticket_holds_what_its_text_says() {
    let text = format!(
        "fontana://10.0.0.7@232.1.2.3:7701/5?manifest={HASH}&key={KEY}&secret={SECRET}&ask=7703"
    );
    let expected = Ticket {
        sources: vec!["10.0.0.7".parse().unwrap()],
        group: "232.1.2.3".parse().unwrap(),
        port: 7701,
        tsi: Tsi(5),
        key: Some(SecretKey::from_seed(&[7; 32]).public_key()),
        manifest: Some(Hash([0x22; 32])),
        secret: Some(TicketSecret::from_bytes(std::array::from_fn(|i| i as u8))),
        ask: Some(7703),
        near: None,
        format: None,
        channels: ChannelGroups::Consecutive(1),
        web: Vec::new(),
    };
    assert_eq!(expected.destination(), "232.1.2.3:7701".parse().unwrap());
    let without = format!("fontana://10.0.0.7@232.1.2.3:7701/5?key={KEY}&manifest={HASH}&ask=7703");
    assert_eq!(expected.without_secret().to_string(), without);
    assert_eq!(parse(&text), Ok(expected));
}

/// Texts that are not tickets, and the error of each.
const ERRORS: &[(&str, &str)] = &[
    ("http://239.255.77.1:7701/1", "a ticket begins with fontana://"),
    ("", "a ticket begins with fontana://"),
    ("fontana://239.255.77.1:7701", "the ticket has no session number: GROUP:PORT/TSI"),
    ("fontana://239.255.77.1:7701/", "\"\" is not a session number (0 to 281474976710655)"),
    (
        "fontana://239.255.77.1:7701/281474976710656",
        "\"281474976710656\" is not a session number (0 to 281474976710655)",
    ),
    ("fontana://239.255.77.1:7701/01", "\"01\" is not a session number (0 to 281474976710655)"),
    ("fontana://239.255.77.1:7701/+1", "\"+1\" is not a session number (0 to 281474976710655)"),
    (
        "fontana://239.255.77.1/1",
        "the ticket has no port after \"239.255.77.1\": GROUP:PORT/TSI, an IPv6 GROUP in brackets",
    ),
    (
        "fontana://[ff3e::1]/1",
        "the ticket has no port after \"[ff3e::1]\": GROUP:PORT/TSI, an IPv6 GROUP in brackets",
    ),
    ("fontana://239.255.77.1:0/1", "\"0\" is not a port (1 to 65535)"),
    ("fontana://239.255.77.1:65536/1", "\"65536\" is not a port (1 to 65535)"),
    (
        "fontana://ff3e::1:7701/1",
        "\"ff3e::1\" is neither an IPv4 address nor an IPv6 address in brackets",
    ),
    (
        "fontana://example.org:7701/1",
        "\"example.org\" is neither an IPv4 address nor an IPv6 address in brackets",
    ),
    (
        "fontana://@239.255.77.1:7701/1",
        "\"\" is neither an IPv4 address nor an IPv6 address in brackets",
    ),
    (
        "fontana://[ff02::1%eth0]:7701/1",
        "\"ff02::1%eth0\" names an interface; write the address without it and choose the interface apart",
    ),
    ("fontana://0.0.0.0:7701/1", "0.0.0.0 is no address that anyone sends from or to"),
    (
        "fontana://10.0.0.7@[ff3e::1]:7701/1",
        "the source 10.0.0.7 and the group ff3e::1 are of different families",
    ),
    (
        "fontana://239.255.77.1@10.0.0.7:7701/1",
        "the source 239.255.77.1 is a multicast address: SOURCE@GROUP, in this order",
    ),
    ("fontana://10.0.0.7,10.0.0.7@232.1.2.3:7701/1", "the source 10.0.0.7 appears twice"),
    (
        "fontana://232.1.2.3:7701/1?key=12",
        "in key=: not a key: 2 characters, 64 hexadecimal digits are right",
    ),
    (
        "fontana://232.1.2.3:7701/1?key",
        "in key=: not a key: 0 characters, 64 hexadecimal digits are right",
    ),
    ("fontana://232.1.2.3:7701/1?ask=0", "\"0\" is not a port (1 to 65535)"),
    (
        "fontana://232.1.2.3:7701/1?secret=AAECAwQFBgcICQoLDA0ODx",
        "in secret=: a secret has 22 characters: letters, digits, - and _",
    ),
    (
        "fontana://232.1.2.3:7701/1?manifest=",
        "in manifest=: 0 characters, 64 hexadecimal digits are right",
    ),
    (
        "fontana://232.1.2.3:7701/1?format=norm",
        "\"norm\" is no format of a session (flute or fcast)",
    ),
    (
        "fontana://232.1.2.3:7701/1?cert=1",
        "the parameter \"cert\" is unknown: this ticket is for a later version",
    ),
    ("fontana://239.1.2.3:7701/1?channels=many", "\"many\" is not a number of channels (2 to 64)"),
    (
        "fontana://10.0.0.7:7701/1?channels=2",
        "10.0.0.7 cannot be a channel's group beside 10.0.0.7: channels are multicast groups of one family",
    ),
    (
        "fontana://239.1.2.3:7701/1?groups=[ff15::1]",
        "ff15::1 cannot be a channel's group beside 239.1.2.3: channels are multicast groups of one family",
    ),
    (
        "fontana://239.1.2.3:7701/1?groups=239.1.2.4,239.1.2.3",
        "two channels are on the group 239.1.2.3",
    ),
    (
        "fontana://239.1.2.3:7701/1?groups=",
        "\"\" is neither an IPv4 address nor an IPv6 address in brackets",
    ),
    (
        "fontana://239.1.2.3:7701/1?channels=2&groups=239.1.2.4",
        "the ticket says more than once what channels there are",
    ),
];

#[test]
fn errors_say_what_is_wrong() {
    for (text, expected) in ERRORS {
        assert_eq!(&message(text), expected, "{text}");
    }
    let twice = format!("fontana://232.1.2.3:7701/1?manifest={HASH}&manifest={HASH}");
    assert_eq!(message(&twice), "the parameter \"manifest\" appears twice");
    let digit = HASH.replacen('2', "g", 1);
    assert_eq!(
        message(&format!("fontana://232.1.2.3:7701/1?manifest={digit}")),
        "in manifest=: character 1 is not a hexadecimal digit"
    );
    // A point of small order, for which signatures can be forged.
    let weak = format!("01{}", "00".repeat(31));
    assert_eq!(
        message(&format!("fontana://232.1.2.3:7701/1?key={weak}")),
        "in key=: these 32 bytes are not an Ed25519 public key"
    );
}

/// Mirrors, as many as a ticket may have.
const WEB: [&str; 8] = [
    "https://a.example/",
    "https://a.example/x/",
    "http://a.example/x/y%20z/",
    "http://10.0.0.7:8000/",
    "http://[fd00::7]:8000/~u/",
    "https://b.example/",
    "https://c.example/",
    "https://d.example/",
];

#[test]
fn mirrors_are_directories_of_web_servers() {
    let ticket = |web: &str| format!("fontana://239.1.2.3:7701/1?web={web}");
    for web in WEB {
        assert_eq!(parse(&ticket(web)).unwrap().to_string(), ticket(web));
    }
    for (address, host) in [
        ("https://a.example/x/", "a.example"),
        ("http://a.example:8080/", "a.example"),
        ("http://[::1]:80/", "[::1]"),
        ("http://10.0.0.7/", "10.0.0.7"),
    ] {
        assert_eq!(address.parse::<WebAddress>().unwrap().host(), host);
    }
    let long = format!("https://a.example/{}/", "x".repeat(WebAddress::MAX_SIZE));
    for web in [
        "",
        "https://",
        "https:///",
        "https://a.example",
        "https://a.example/x",
        "ftp://a.example/",
        "https://u@a.example/",
        "https://a.example/?q/",
        "https://a.example/#x/",
        "https://a.example/a b/",
        "https://a.example/\u{e9}/",
        &long,
    ] {
        assert!(matches!(parse(&ticket(web)), Err(TicketError::Web(_))), "{web}");
    }
    assert_eq!(
        message(&format!("{}&web={}", ticket(WEB[0]), WEB[0])),
        "the parameter \"web\" appears twice"
    );
    let nine = format!("{}&web=https://e.example/", ticket(&WEB.join("&web=")));
    assert_eq!(message(&nine), "a ticket has at most 8 mirrors");
}

#[test]
fn a_ticket_for_mirrors_alone_has_a_manifest_and_mirrors() {
    let text = |web: &[&str]| {
        let web: String = web.iter().map(|web| format!("&web={web}")).collect();
        format!("fontana://web/?manifest={HASH}{web}")
    };
    let read = |text: &str| text.parse::<WebTicket>();
    for count in 1..=WEB.len() {
        let text = text(&WEB[..count]);
        let ticket = read(&text).unwrap();
        assert_eq!((ticket.web.len(), ticket.to_string()), (count, text.clone()));
        assert!(WebTicket::is_meant(&text) && parse(&text).is_err());
        for cut in truncations(text.as_bytes()) {
            let _ = read(str::from_utf8(cut).unwrap());
        }
    }
    assert_eq!(read(&text(&[])), Err(WebTicketError::Count));
    assert_eq!(read(&text(&[WEB[0], WEB[0]])), Err(WebTicketError::Count));
    assert!(matches!(read(&text(&["ftp://a/"])), Err(WebTicketError::Address(_))));
    assert_eq!(read(&format!("{}&key=1", text(&[WEB[0]]))), Err(WebTicketError::Scheme));
    assert!(matches!(
        read("fontana://web/?manifest=12&web=https://a/"),
        Err(WebTicketError::Manifest(_))
    ));
}

#[test]
fn a_ticket_has_at_most_twenty_sources() {
    let text = |count: usize| {
        let sources: Vec<_> = (1..=count).map(|i| format!("10.0.0.{i}")).collect();
        format!("fontana://{}@232.1.2.3:7701/1", sources.join(","))
    };
    assert_eq!(parse(&text(20)).unwrap().sources.len(), Ticket::MAX_SOURCES);
    assert_eq!(parse(&text(21)), Err(TicketError::SourceCount { limit: 20 }));
    let endless = format!("fontana://{}", "x".repeat(1 << 20));
    assert_eq!(parse(&endless), Err(TicketError::Size { limit: 8192 }));
}

#[test]
fn a_ticket_has_at_most_sixty_four_channels() {
    let counted = |count: u32| parse(&format!("fontana://239.1.2.250:7701/1?channels={count}"));
    let ticket = counted(64).unwrap();
    assert_eq!(ticket.channels.group(ticket.group, 5), Some([239, 1, 2, 255].into()));
    assert_eq!(ticket.channels.group(ticket.group, 6), Some([239, 1, 3, 0].into()));
    assert_eq!(ticket.channels.groups(ticket.group).count(), 64);
    for count in [0, 1, 65, 257] {
        assert_eq!(counted(count), Err(TicketError::ChannelCount(count.to_string())));
    }
    let listed = |count: usize| {
        let others: Vec<_> = (1..count).map(|i| format!("239.9.9.{i}")).collect();
        parse(&format!("fontana://239.1.2.3:7701/1?groups={}", others.join(",")))
    };
    assert_eq!(listed(64).unwrap().channels.count(), 64);
    assert_eq!(listed(65), Err(TicketError::ChannelCount("65".to_owned())));
}

#[test]
fn channels_end_with_the_last_group() {
    let ticket = |text: &str| parse(&format!("fontana://{text}"));
    assert!(ticket("239.255.255.254:1/1?channels=2").is_ok());
    // The address after it is not multicast.
    assert_eq!(
        ticket("239.255.255.254:1/1?channels=3"),
        Err(TicketError::NotAGroup {
            group: [240, 0, 0, 0].into(),
            first: [239, 255, 255, 254].into()
        })
    );
    let last = "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:1/1?channels=2";
    assert!(matches!(ticket(last), Err(TicketError::BeyondTheLastGroup { count: 2, .. })));
}

#[test]
fn the_longest_ticket_is_shorter_than_the_limit() {
    let long = "[2001:db8:1111:2222:3333:4444:5555:66";
    let sources: Vec<_> = (10..30).map(|i| format!("{long}{i}]")).collect();
    let others: Vec<_> =
        (10..73).map(|i| format!("[ff3e:1111:1111:1111:1111:1111:1111:22{i}]")).collect();
    let text = format!(
        "fontana://{}@[ff3e:1111:1111:1111:1111:1111:1111:1111]:65535/281474976710655?key={KEY}&manifest={HASH}&secret={SECRET}&ask=65535&groups={}",
        sources.join(","),
        others.join(",")
    );
    assert_eq!(parse(&text).unwrap().to_string(), text);
    for cut in truncations(text.as_bytes()) {
        // A prefix is a ticket with fewer parameters, or an error.
        let _ = parse(str::from_utf8(cut).unwrap());
    }
}

proptest! {
    #[test]
    fn every_ticket_is_read_back(
        sources: [u32; 3],
        count in 0..=3_usize,
        group: u128,
        v6: bool,
        port in 1..=u16::MAX,
        tsi in 0..=Tsi::MAX.0,
        seed: Option<[u8; 32]>,
        manifest: Option<[u8; 32]>,
        secret: Option<[u8; 16]>,
        ask: Option<NonZeroU16>,
        channel_count in 1..=MAX_CHANNELS,
        listed: bool,
        web in 0..=WEB.len(),
    ) {
        let address = |bits: u128| if v6 {
            IpAddr::V6(bits.into())
        } else {
            IpAddr::V4((bits as u32).into())
        };
        let group = address(group);
        prop_assume!(!group.is_unspecified());
        let mut unique = Vec::new();
        for source in sources.into_iter().take(count).map(|bits| address(bits.into())) {
            if !source.is_unspecified() && !source.is_multicast() && !unique.contains(&source) {
                unique.push(source);
            }
        }
        let channels = match ChannelGroups::Consecutive(channel_count) {
            all if all.groups(group).any(|group| !group.is_multicast()) => ChannelGroups::default(),
            // Groups that are not consecutive.
            all if listed && channel_count > 1 => {
                let mut others: Vec<_> = all.groups(group).skip(1).collect();
                others.reverse();
                ChannelGroups::Listed(others)
            }
            all => all,
        };
        let ticket = Ticket {
            near: unique.last().copied(),
            sources: unique,
            group,
            port,
            tsi: Tsi(tsi),
            key: seed.map(|seed| SecretKey::from_seed(&seed).public_key()),
            manifest: manifest.map(Hash),
            secret: secret.map(TicketSecret::from_bytes),
            ask: ask.map(NonZeroU16::get),
            format: [None, Some(ForeignFormat::Flute), Some(ForeignFormat::Fcast)][web % 3],
            channels,
            web: WEB.iter().take(web).map(|text| text.parse().unwrap()).collect(),
        };
        prop_assert_eq!(parse(&ticket.to_string()), Ok(ticket));
    }
}
