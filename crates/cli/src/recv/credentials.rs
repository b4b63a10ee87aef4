//! What `fontana recv` tells mirrors of its user: `--header` and `--netrc`.

use super::mirrors::{self, Mirrors};
use crate::args::ReceiveArguments;
use crate::key_file;
use fontana::{MirrorHeader, Outcome};
use fontana_console::failure::Failure;
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Largest file of `--netrc` that is read.
const MAX_FILE: u64 = 64 << 10;

/// The fields of requests, each for one mirror. A mirror of the ticket gets the password that
/// `--netrc` has for its host, but not one that it has for every host: the author of the ticket has
/// chosen the host.
pub(super) fn of_arguments(arguments: &ReceiveArguments) -> Result<Vec<MirrorHeader>, Failure> {
    if !arguments.headers.is_empty() || arguments.netrc.is_some() {
        key_file::keep_secrets();
    }
    let mut headers = Vec::new();
    if !arguments.headers.is_empty() && mirrors::given(arguments).next().is_none() {
        let message = "--header without a mirror: it is for those of the command line";
        return Err(Failure::new(Outcome::Usage, message, "name one: https://HOST/DIR/"));
    }
    for field in &arguments.headers {
        for mirror in mirrors::given(arguments) {
            // The field may be a secret: it is not shown.
            let header = MirrorHeader::parse(mirror.address().clone(), field).map_err(|error| {
                let message = format!("--header: {error}");
                Failure::new(Outcome::Usage, message, "--header 'Authorization: Bearer TOKEN'")
            })?;
            headers.push(header);
        }
    }
    let Some(path) = &arguments.netrc else { return Ok(headers) };
    let text = read(path)?;
    let logins = parse(&text).map_err(|error| refused(path, &error))?;
    for mirror in Mirrors::of_arguments(arguments).addresses() {
        let is_given = mirrors::given(arguments).any(|given| given.address() == mirror);
        let is_for = |login: &&Login| login.is_for(mirror.host(), is_given);
        if let Some(login) = logins.iter().find(is_for) {
            let header = MirrorHeader::basic(mirror.clone(), &login.user, &login.password);
            headers.push(header.map_err(|error| refused(path, &error))?);
        }
    }
    Ok(headers)
}

fn refused(path: &Path, error: &dyn Display) -> Failure {
    let message = format!("--netrc {path:?}: {error}");
    Failure::new(Outcome::Usage, message, "a line of it: machine HOST login NAME password WORD")
}

fn read(path: &Path) -> Result<String, Failure> {
    let file = File::open(path).map_err(|error| refused(path, &error))?;
    if key_file::may_be_read_by_others(&file).map_err(|error| refused(path, &error))? {
        let message = format!("other users may read the passwords in {path:?}");
        let hint = format!("chmod 600 {}", path.display());
        return Err(Failure::new(Outcome::Authentication, message, hint));
    }
    let mut text = String::new();
    (&file).take(MAX_FILE).read_to_string(&mut text).map_err(|error| refused(path, &error))?;
    Ok(text)
}

/// A user of a host.
#[derive(Debug, Default, PartialEq, Eq)]
struct Login {
    /// `None`: of every host (`default`).
    host: Option<String>,
    user: String,
    password: String,
}

impl Login {
    /// `is_given`: the user has given the host, and not the ticket.
    fn is_for(&self, host: &str, is_given: bool) -> bool {
        self.host.as_ref().map_or(is_given, |own| own.eq_ignore_ascii_case(host))
    }
}

/// Reason why a file is not one of logins.
#[derive(Debug, PartialEq, Eq)]
enum NetrcError {
    Unknown(String),
    Ends(&'static str),
    BeforeMachine(&'static str),
}

impl Display for NetrcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(word) => write!(f, "the unknown word {word:?}"),
            Self::Ends(word) => write!(f, "nothing follows {word}"),
            Self::BeforeMachine(word) => write!(f, "{word} comes before any machine"),
        }
    }
}

/// The logins of a file in the format of ftp(1). Comments begin with `#`, and a macro ends with an
/// empty line.
fn parse(text: &str) -> Result<Vec<Login>, NetrcError> {
    let mut logins: Vec<Login> = Vec::new();
    let mut lines = text.lines();
    // `login`, `password` and `account`, whose word may be on the next line.
    let mut expects: Option<&'static str> = None;
    while let Some(line) = lines.next() {
        for word in line.split_whitespace() {
            let Some(field) = expects.take() else {
                match word {
                    comment if comment.starts_with('#') => break,
                    "default" => logins.push(Login::default()),
                    "macdef" => {
                        lines.by_ref().find(|line| line.trim().is_empty());
                        break;
                    }
                    word => expects = Some(field_of(word)?),
                }
                continue;
            };
            if field == "machine" {
                logins.push(Login { host: Some(word.to_owned()), ..Login::default() });
                continue;
            }
            let login = logins.last_mut().ok_or(NetrcError::BeforeMachine(field))?;
            match field {
                "login" => word.clone_into(&mut login.user),
                "password" => word.clone_into(&mut login.password),
                _ => {}
            }
        }
    }
    expects.map_or(Ok(logins), |field| Err(NetrcError::Ends(field)))
}

fn field_of(word: &str) -> Result<&'static str, NetrcError> {
    let fields = ["machine", "login", "password", "account"];
    let known = fields.into_iter().find(|field| *field == word);
    // It may be a part of a password: one character of it is shown.
    known.ok_or_else(|| NetrcError::Unknown(word.chars().take(1).chain("...".chars()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(host: Option<&str>, user: &str, password: &str) -> Login {
        let host = host.map(str::to_owned);
        Login { host, user: user.into(), password: password.into() }
    }

    #[test]
    fn logins_are_found_on_one_line_or_several() {
        let text = "# mirrors\nmachine a.example login me password pa#ss\n\nmachine b.example\n  \
                    login you\n  account x\n  password\n  word\nmacdef init\n  machine no\n\n\
                    default login anyone password at@home\n";
        let logins = parse(text).unwrap();
        assert_eq!(
            logins,
            [
                login(Some("a.example"), "me", "pa#ss"),
                login(Some("b.example"), "you", "word"),
                login(None, "anyone", "at@home"),
            ]
        );
        let of = |host: &str, is_given| {
            let login = logins.iter().find(|login| login.is_for(host, is_given));
            login.map(|login| login.user.as_str())
        };
        assert_eq!([of("A.example", true), of("b.example", false)], [Some("me"), Some("you")]);
        assert_eq!([of("c.example", true), of("c.example", false)], [Some("anyone"), None]);
    }

    #[test]
    fn a_file_of_another_format_is_refused_without_showing_its_words() {
        assert_eq!(parse("machine a login"), Err(NetrcError::Ends("login")));
        assert_eq!(parse("login me"), Err(NetrcError::BeforeMachine("login")));
        let error = parse("hunter2").unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
        assert_eq!(parse(""), Ok(Vec::new()));
    }
}
