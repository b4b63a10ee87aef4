//! What mirrors have, if the receiver has no ticket: each is asked for its head
//! ([`MirrorHead`]), and then for the manifest that it names.

use super::address::Site;
use super::client::{Access, Client};
use super::failure::MirrorFailure;
use super::patience::Need;
use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::mirror_head::MirrorHead;
use crate::mirrored::manifest_file_name;
use crossbeam_channel::{Receiver, RecvTimeoutError, unbounded};
use fontana_net::PanicError;
use fontana_net::thread::{catch, spawn};
use fontana_proto::{Expectation, Rejection};
use fontana_wire::{
    ContentKind, Hash, HeadError, Manifest, ManifestError, ManifestLimits, PublicKey, SessionHead,
    UnverifiedHead, WebAddress, manifest_hash,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest head, with its records.
const MAX_HEAD: u64 = 64 << 10;
/// How long the other mirrors may take once one of them has named content: a newer version may be
/// on a slower one.
const GRACE: Duration = Duration::from_secs(2);
/// How often it looks whether it is stopped.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The content that mirrors name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Published {
    /// The hash of its manifest.
    pub hash: Hash,
    /// Its manifest.
    pub manifest: Arc<Manifest>,
    /// Who has signed the head. It is the expected publisher, if there is one; otherwise anyone who
    /// can write to the mirrors may have made the key.
    pub publisher: Option<PublicKey>,
    /// The mirrors that named it.
    pub mirrors: Vec<WebAddress>,
    /// The others, and why they are not counted.
    pub others: Vec<(WebAddress, NotPublished)>,
    /// The time that it took to find it.
    pub took: Duration,
}

/// Why what a mirror says is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotPublished {
    /// It does not answer, or has no head.
    #[error(transparent)]
    Mirror(#[from] MirrorFailure),
    /// Its head is none, or the publisher has not signed it.
    #[error("{name}: {0}", name = MirrorHead::FILE_NAME)]
    Head(#[from] HeadError),
    /// Its head has expired by this host's clock.
    #[error("{name} has expired", name = MirrorHead::FILE_NAME)]
    Expired {
        /// Since when, in unix seconds.
        unix_seconds: u64,
    },
    /// Its version is not newer than what was received from this publisher.
    #[error("it has an older version than was received before")]
    OldVersion,
    /// Its head is that of a stream.
    #[error("{name} is the head of a stream", name = MirrorHead::FILE_NAME)]
    Stream,
    /// Its manifest has another version than its head.
    #[error("its manifest has another version than {name}", name = MirrorHead::FILE_NAME)]
    OtherVersion,
    /// Its manifest is not valid.
    #[error("its manifest is not valid: {0}")]
    Manifest(#[from] ManifestError),
    /// It names an older version than another mirror.
    #[error("it has the older version {0}")]
    Older(u64),
    /// It had not answered when others had.
    #[error("it has not answered yet")]
    Late,
}

/// Why no content is known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishedError {
    /// No mirror has named content that is acceptable.
    #[error("no mirror says what it has")]
    Nothing(Vec<(WebAddress, NotPublished)>),
    /// Mirrors name different content.
    #[error("{} has the manifest {}, and {} has {}", .first.0, .first.1, .second.0, .second.1)]
    Differ {
        /// A mirror, and its manifest's hash.
        first: (WebAddress, Hash),
        /// Another one.
        second: (WebAddress, Hash),
    },
    /// It was stopped.
    #[error("stopped")]
    Stopped,
    /// A thread has failed.
    #[error(transparent)]
    System(#[from] Error),
}

/// A head that is acceptable.
#[derive(Clone, Debug)]
struct Head {
    head: SessionHead,
    publisher: Option<PublicKey>,
}

/// What all mirrors have answered.
struct Heads<'a> {
    /// Those with a head that is acceptable.
    heads: Vec<(&'a Site, Head)>,
    others: Vec<(WebAddress, NotPublished)>,
}

/// Which content the mirrors have.
pub(crate) struct Discovery<'a> {
    pub(crate) sites: &'a [Site],
    pub(crate) access: &'a Access,
    pub(crate) expectation: &'a Expectation,
    pub(crate) now_unix_seconds: u64,
    pub(crate) limits: ManifestLimits,
    pub(crate) token: &'a CancellationToken,
    /// How long mirrors that fail for a while are asked again; `None`: until it is stopped.
    pub(crate) time: Option<Duration>,
    /// Is told of such failures, and when the mirror is asked again.
    pub(crate) on_failure: &'a dyn Fn(&WebAddress, &MirrorFailure, Duration),
}

impl Discovery<'_> {
    /// Asks all mirrors for their heads, and those with the newest one for the manifest.
    pub(crate) fn run(&self) -> Result<Published, PublishedError> {
        let began = Instant::now();
        let Heads { heads, mut others } = self.heads()?;
        let Some(newest) = heads.iter().map(|(_, head)| head.head.manifest_version).max() else {
            return Err(PublishedError::Nothing(others));
        };
        // Without the publisher's signature a version is what anyone says.
        let is_known = self.expectation.publisher.is_some();
        let (mut named, mut found) = (Vec::new(), None::<(&Site, Head)>);
        for (site, head) in heads {
            let version = head.head.manifest_version;
            if is_known && version < newest {
                others.push((site.address.clone(), NotPublished::Older(version)));
                continue;
            }
            let (first, one) = found.get_or_insert_with(|| (site, head.clone()));
            let hashes = (one.head.manifest.hash, head.head.manifest.hash);
            if hashes.0 != hashes.1 {
                let first = (first.address.clone(), hashes.0);
                let second = (site.address.clone(), hashes.1);
                return Err(PublishedError::Differ { first, second });
            }
            // The mirrors agree on the content, whether all heads are signed or not.
            one.publisher = one.publisher.or(head.publisher);
            named.push(site.clone());
        }
        let Some((_, Head { head, publisher })) = found else {
            return Err(PublishedError::Nothing(others));
        };
        let manifest = Arc::new(self.manifest(&mut named, &mut others, &head)?);
        let mirrors = named.into_iter().map(|site| site.address).collect();
        let (hash, took) = (head.manifest.hash, began.elapsed());
        Ok(Published { hash, manifest, publisher, mirrors, others, took })
    }

    /// The heads of the mirrors, in their order, and the mirrors without one.
    fn heads(&self) -> Result<Heads<'_>, PublishedError> {
        let mut answers: Vec<Option<Result<Head, NotPublished>>> = Vec::new();
        answers.resize_with(self.sites.len(), || None);
        let path: Arc<str> = MirrorHead::FILE_NAME.into();
        let requests = Requests::begin(self.sites, &path, MAX_HEAD, self.access)?;
        let (mut until, mut passing) = (self.until(), BTreeMap::new());
        let mut has_head = false;
        while answers.iter().any(Option::is_none) {
            let Some(Answered { mirror: number, file }) = requests.next(until, self.token)? else {
                break;
            };
            let file = match file {
                Ok(bytes) => Ok(bytes),
                Err(Failed { failure, again: Some(pause) }) => {
                    self.tell(self.sites.get(number), &failure, pause);
                    passing.insert(number, failure);
                    continue;
                }
                Err(Failed { failure, again: None }) => Err(failure),
            };
            let head = file.map_err(NotPublished::from).and_then(|bytes| self.judge(&bytes));
            if head.is_ok() && !has_head {
                has_head = true;
                let grace = Instant::now() + GRACE;
                until = Some(until.map_or(grace, |until| until.min(grace)));
            }
            if let Some(answer) = answers.get_mut(number) {
                *answer = Some(head);
            }
        }
        let (mut heads, mut others) = (Vec::new(), Vec::new());
        for (number, (site, answer)) in self.sites.iter().zip(answers).enumerate() {
            let mut late =
                || passing.remove(&number).map_or(NotPublished::Late, NotPublished::from);
            match answer.unwrap_or_else(|| Err(late())) {
                Ok(head) => heads.push((site, head)),
                Err(why) => others.push((site.address.clone(), why)),
            }
        }
        Ok(Heads { heads, others })
    }

    /// When mirrors that fail are asked for the last time.
    fn until(&self) -> Option<Instant> {
        self.time.map(|time| Instant::now() + time)
    }

    fn tell(&self, site: Option<&Site>, failure: &MirrorFailure, pause: Duration) {
        site.into_iter().for_each(|site| (self.on_failure)(&site.address, failure, pause));
    }

    /// Checks a head. A signature that does not match is refused also if no publisher is expected:
    /// the key that it names is shown to the user.
    fn judge(&self, bytes: &[u8]) -> Result<Head, NotPublished> {
        let unverified = UnverifiedHead::parse(bytes)?;
        if unverified.kind() != ContentKind::Manifest {
            return Err(NotPublished::Stream);
        }
        let publisher = self.expectation.publisher.or(unverified.claimed_signer());
        let head = match &publisher {
            Some(key) => unverified.verify(key)?,
            None => unverified.without_verification(),
        };
        match self.expectation.check_validity(&head, self.now_unix_seconds) {
            Ok(()) => Ok(Head { head, publisher }),
            Err(Rejection::Expired { unix_seconds }) => Err(NotPublished::Expired { unix_seconds }),
            Err(_) => Err(NotPublished::OldVersion),
        }
    }

    /// Gets the manifest that a head names: from all mirrors at once, so that a slow one delays
    /// nothing. Mirrors that send anything else are moved to the others.
    fn manifest(
        &self,
        named: &mut Vec<Site>,
        others: &mut Vec<(WebAddress, NotPublished)>,
        head: &SessionHead,
    ) -> Result<Manifest, PublishedError> {
        let name = manifest_file_name(head.manifest.hash);
        let limit = (self.limits.bytes + Hash::SIZE) as u64;
        let requests = Requests::begin(named, &Arc::from(name.as_str()), limit, self.access)?;
        let mut failed: BTreeMap<usize, NotPublished> = BTreeMap::new();
        let until = self.until();
        let manifest = loop {
            let Some(Answered { mirror, file }) = requests.next(until, self.token)? else {
                break None;
            };
            let file = match file {
                Err(Failed { failure, again: Some(pause) }) => {
                    self.tell(named.get(mirror), &failure, pause);
                    failed.insert(mirror, failure.into());
                    continue;
                }
                Err(Failed { failure, again: None }) => Err(failure),
                Ok(bytes) => {
                    failed.remove(&mirror);
                    Ok(bytes)
                }
            };
            let parse = |bytes: Vec<u8>| self.parse(&bytes, head, name.clone());
            match file.map_err(NotPublished::from).and_then(parse) {
                Ok(manifest) => break Some(manifest),
                Err(why) => _ = failed.insert(mirror, why),
            }
        };
        for (mirror, why) in failed.into_iter().rev() {
            others.push((named.remove(mirror).address, why));
        }
        manifest.ok_or_else(|| PublishedError::Nothing(std::mem::take(others)))
    }

    fn parse(
        &self,
        bytes: &[u8],
        head: &SessionHead,
        path: String,
    ) -> Result<Manifest, NotPublished> {
        let body = bytes.split_last_chunk::<{ Hash::SIZE }>().map(|(body, _)| body);
        let body = body.filter(|body| manifest_hash(body) == head.manifest.hash);
        let body = body.ok_or(MirrorFailure::Manifest { path, bytes: bytes.len() })?;
        let manifest = Manifest::parse(body, &self.limits)?;
        match manifest.version() == head.manifest_version {
            true => Ok(manifest),
            false => Err(NotPublished::OtherVersion),
        }
    }
}

/// A file that is requested of several mirrors at once. Dropping it cuts the answers.
struct Requests {
    needs: Vec<Arc<Need>>,
    files: Receiver<Result<Answered, PanicError>>,
}

/// The file of a mirror.
struct Answered {
    /// The number of the mirror.
    mirror: usize,
    file: Result<Vec<u8>, Failed>,
}

/// A request has failed.
struct Failed {
    failure: MirrorFailure,
    /// The time until the next one; `None` if there is none.
    again: Option<Duration>,
}

impl Failed {
    fn new(failure: MirrorFailure, failures: u32) -> Self {
        let may_pass = failure.may_pass() && failure != MirrorFailure::Cut;
        let again = may_pass.then(|| failure.pause(failures));
        Self { failure, again }
    }
}

impl Requests {
    fn begin(sites: &[Site], path: &Arc<str>, limit: u64, access: &Access) -> Result<Self, Error> {
        let (sender, files) = unbounded();
        let mut needs = Vec::new();
        for (mirror, site) in sites.iter().enumerate() {
            let need = Arc::new(Need::default());
            need.begin(u64::MAX);
            let mut client = Client::new(site.clone(), Arc::clone(&need), access);
            let (path, sender) = (Arc::clone(path), sender.clone());
            // It ends when the answer is cut, but a name server may keep it waiting.
            let own = Arc::clone(&need);
            drop(spawn("mirror", move || {
                for failures in 1.. {
                    let read = catch(|| client.read(&path, limit));
                    let file = read.map(|file| file.map_err(|why| Failed::new(why, failures)));
                    let again = match &file {
                        Ok(Err(failed)) => failed.again,
                        Ok(Ok(_)) | Err(_) => None,
                    };
                    let file = file.map(|file| Answered { mirror, file });
                    let is_sent = sender.send(file).is_ok();
                    let Some(pause) = again.filter(|_| is_sent) else { return };
                    if !own.wait(pause) {
                        return;
                    }
                }
            })?);
            needs.push(need);
        }
        Ok(Self { needs, files })
    }

    /// The next answer, with the number of its mirror; `None` if the time is up, or all have
    /// answered.
    fn next(
        &self,
        until: Option<Instant>,
        token: &CancellationToken,
    ) -> Result<Option<Answered>, PublishedError> {
        loop {
            if token.is_cancelled() {
                return Err(PublishedError::Stopped);
            }
            match self.files.recv_timeout(LOOK_EVERY) {
                Ok(answered) => return Ok(Some(answered.map_err(Error::from)?)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) if until.is_some_and(|at| at <= Instant::now()) => {
                    return Ok(None);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.needs.iter().for_each(|need| need.end());
    }
}
