//! What people and web servers hand to a receiver as text, made of the pieces that texts have.

use super::patched;
use fontana_wire::{
    ChannelGroups, Hash, Printable, PublicKey, RelativePath, SecretKey, Ticket, WebAddress,
    WebTicket, emit_content_location, parse_content_location,
};
use std::net::IpAddr;

const KEY: &str = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c";
const HASH: &str = "2222222222222222222222222222222222222222222222222222222222222222";

/// Pieces of tickets, chosen by bytes. A choice beyond the list is `junk`.
fn pieces<'t>(choices: &[u8], list: &[&'t str], junk: &'t str) -> String {
    choices.iter().map(|&at| list.get(usize::from(at)).copied().unwrap_or(junk)).collect()
}

#[test]
fn ticket_of_pieces() {
    let beginnings = [
        "239.255.77.1:7701/1",
        "10.0.0.7@232.1.2.3:7701/0",
        "10.0.0.7,10.0.0.8@232.1.2.3:65535/281474976710655",
        "[ff3e::8000:1]:1/5",
        "[2001:db8::1],[2001:db8::2]@[ff3e::8000:1]:7701/5",
        "[2001:db8::1]@232.1.2.3:7701/5",
        "127.0.0.1:7701/5",
        "10.0.0.7,10.0.0.7@232.1.2.3:7701/5",
        "232.1.2.3:0/5",
        "232.1.2.3:7701/281474976710656",
    ];
    let (key, hash) = (format!("key={KEY}"), format!("manifest={HASH}"));
    let options = [
        key.as_str(),
        hash.as_str(),
        "secret=AAECAwQFBgcICQoLDA0ODw",
        "ask=7703",
        "near=10.0.0.7",
        "near=[fd00::7]",
        "channels=2",
        "channels=65",
        "groups=239.1.2.3",
        "groups=[ff15::8],[ff15::2]",
        "web=https://a.example/x/",
        "web=http://[::1]:80/",
        "web=https://a.example/?",
        "key=00",
        "other=1",
        "?",
        "&",
        "&",
        "&",
        "",
    ];
    type Choices = (u8, Vec<u8>, String, u16, u16, Vec<u8>);
    bolero::check!().with_type::<Choices>().for_each(|(first, rest, junk, at, cut, patch)| {
        let first = beginnings[usize::from(*first) % beginnings.len()];
        let listed: Vec<u8> = rest.iter().take(8).map(|choice| choice % 21).collect();
        let joined: Vec<String> =
            listed.iter().map(|&choice| pieces(&[choice], &options, junk)).collect();
        for options in [pieces(&listed, &options, junk), joined.join("&")] {
            let text = format!("fontana://{first}?{options}");
            let text = text.strip_suffix('?').unwrap_or(&text).to_owned();
            let damaged = patched(text.as_bytes(), *at, *cut, patch);
            let damaged = String::from_utf8_lossy(&damaged);
            for text in [text.as_str(), &damaged] {
                match text.parse::<Ticket>() {
                    Ok(ticket) => {
                        assert_eq!(ticket.to_string().parse(), Ok(ticket.clone()));
                        assert_eq!(ticket.destination().ip(), ticket.group);
                        let groups: Vec<IpAddr> = ticket.channels.groups(ticket.group).collect();
                        assert_eq!(groups.first(), Some(&ticket.group));
                        assert!(groups.len() <= usize::from(ticket.channels.count()));
                    }
                    Err(error) => assert!(!error.to_string().contains(char::is_control)),
                }
            }
        }
    });
}

#[test]
fn groups_of_channels() {
    bolero::check!().with_type::<(u8, u128, bool)>().for_each(|&(count, first, is_old)| {
        let first = if is_old {
            IpAddr::from((first as u32).to_be_bytes())
        } else {
            IpAddr::from(first.to_be_bytes())
        };
        let consecutive = ChannelGroups::Consecutive(count);
        let groups: Vec<IpAddr> = consecutive.groups(first).collect();
        assert!(groups.len() <= usize::from(count) && groups.is_sorted());
        let listed = ChannelGroups::Listed(groups.iter().skip(1).copied().collect());
        assert!(listed.groups(first).eq(groups.iter().copied()) || groups.is_empty());
        assert!(ChannelGroups::default().groups(first).eq([first]));
    });
}

#[test]
fn ticket_for_mirrors() {
    let good = format!(
        "fontana://web/?manifest={HASH}&web=https://a.example/x/&web=http://[::1]:80/&web=http://b/"
    );
    bolero::check!().with_type::<(u16, u16, String)>().for_each(|(at, cut, patch)| {
        let text = String::from_utf8_lossy(&patched(good.as_bytes(), *at, *cut, patch.as_bytes()))
            .into_owned();
        match text.parse::<WebTicket>() {
            Ok(ticket) => {
                assert!(WebTicket::is_meant(&text) && !ticket.web.is_empty());
                assert_eq!(ticket.to_string(), text);
                assert!(ticket.web.iter().all(|web| web.as_str().parse::<WebAddress>().is_ok()));
            }
            Err(error) => assert!(!error.to_string().contains(char::is_control)),
        }
    });
}

#[test]
fn hashes_and_keys() {
    let secret = SecretKey::from_seed(&[7; 32]);
    let file = secret.to_file_text();
    assert!(!format!("{secret:?}").contains(file.trim()), "no log shows a secret key");
    bolero::check!().with_type::<(u16, u16, Vec<u8>)>().for_each(|(at, cut, patch)| {
        for good in [KEY, HASH, file.as_str()] {
            let bytes = patched(good.as_bytes(), *at, *cut, patch);
            let text = String::from_utf8_lossy(&bytes);
            match text.parse::<Hash>() {
                Ok(hash) => {
                    assert!(hash.to_string().eq_ignore_ascii_case(&text));
                    assert!(!format!("{hash:?}").contains(char::is_control));
                }
                Err(error) => assert!(!error.to_string().contains(char::is_control)),
            }
            match text.parse::<PublicKey>() {
                Ok(key) => {
                    assert!(key.to_string().eq_ignore_ascii_case(&text));
                    assert!(!format!("{key:?}").contains(char::is_control));
                }
                Err(error) => assert!(!error.to_string().contains(char::is_control)),
            }
            match text.parse::<SecretKey>() {
                Ok(key) => assert_eq!(
                    key.to_file_text().parse::<SecretKey>().unwrap().public_key(),
                    key.public_key()
                ),
                Err(error) => assert!(!error.to_string().contains(char::is_control)),
            }
        }
    });
}

#[test]
fn relative_path() {
    bolero::check!().with_type::<(Vec<u8>, u8)>().for_each(|(bytes, place)| {
        let mut nested = bytes.clone();
        nested.truncate(64);
        nested.insert(usize::from(*place) % (nested.len() + 1), b'/');
        for bytes in [bytes, &nested] {
            let Ok(path) = RelativePath::new(bytes) else {
                let error = RelativePath::new(bytes).map(|_| ()).map_err(|error| error.to_string());
                assert!(error.is_err_and(|error| !error.contains(char::is_control)));
                continue;
            };
            assert_eq!(path.as_bytes(), bytes.as_slice());
            let again = RelativePath::from_components(path.components());
            assert_eq!(again.as_ref(), Ok(&path));
            for shown in [path.to_string(), format!("{path:?}"), format!("{:?}", Printable(bytes))]
            {
                assert!(!shown.contains(char::is_control));
            }
            let parent: Vec<&[u8]> = path.components().rev().skip(1).collect();
            if let Ok(parent) = RelativePath::from_components(parent.into_iter().rev()) {
                assert!(path.is_below(&parent) && !parent.is_below(&path) && parent < path);
            }
        }
    });
}

#[test]
fn content_location_of_pieces() {
    let parts = [
        "http://",
        "file:",
        "urn:",
        "mailto:",
        "//host",
        "/",
        "\\",
        ".",
        "..",
        "?",
        "#",
        "&",
        "=",
        "%41",
        "%2F",
        "%zz",
        "%",
        ":",
        "a",
        "ä",
        "aux",
        "COM1.txt",
        "LPT\u{b9}",
        "con ",
        "b.",
        "+",
        "\u{7}",
        "%ff",
    ];
    bolero::check!().with_type::<(Vec<u8>, String)>().for_each(|(choices, junk)| {
        let choices: Vec<u8> = choices.iter().take(12).map(|choice| choice % 29).collect();
        match parse_content_location(&pieces(&choices, &parts, junk)) {
            Ok(path) => {
                let name = str::from_utf8(path.as_bytes()).unwrap();
                assert!(!name.contains(char::is_control) && !name.contains([':', '\\']));
                assert!(path.components().all(|part| !matches!(part, b"" | b"." | b"..")));
                // What a sender writes for this path is read as this path.
                let location = emit_content_location(&path);
                assert_eq!(parse_content_location(&location), Ok(path));
            }
            Err(error) => assert!(!error.to_string().contains(char::is_control)),
        }
    });
}
