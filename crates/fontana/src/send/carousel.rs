//! An FCAST session that takes further files while it runs. Files that the application adds
//! ([`Sender::add`](crate::Sender::add), KEEP_DATA in Roca and Mordelet 2002, section 4.2.3) wait
//! until [`Sender::go`](crate::Sender::go) (PUSH_DATA). Then the next instance of the carousel
//! begins (RFC 6968, section 2.2), which lists all objects so far.

use super::options::SendOptions;
use super::runner::{EncoderPool, SentObject};
use crate::content::{Content, ContentOptions, MAX_OBJECTS};
use crate::error::{Error, SetupError};
use crate::geometry::{self, Code};
use crossbeam_channel::{Receiver, Sender, unbounded};
use fontana_proto::{ControlObject, SendObject};
use fontana_store::Descriptors;
use fontana_wire::{CarouselInstance, ContentEncoding, RelativePath, Toi};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How the content of a session is cut and encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) code: Code,
    pub(super) symbol_size: u16,
}

/// An addition to a running session.
pub(super) struct NextInstance {
    pub(super) objects: Vec<SendObject>,
    pub(super) encoders: Vec<(Toi, SentObject)>,
    pub(super) source_symbols: u64,
    pub(super) control: Vec<ControlObject>,
}

/// The application's handle of a session that takes further files.
pub(crate) struct Carousel {
    options: SendOptions,
    geometry: Geometry,
    slice_bytes: Option<u64>,
    pool: EncoderPool,
    /// Those of all files that are added.
    open: Descriptors,
    state: Mutex<State>,
    instances: Sender<NextInstance>,
}

struct State {
    /// Names of all files so far, as receivers see them.
    names: BTreeSet<RelativePath>,
    /// TOIs of the objects that are being sent.
    sent: Vec<RangeInclusive<Toi>>,
    next_toi: u32,
    /// Content that is not sent yet.
    added: Vec<Content>,
    /// Number of the last instance.
    instance: u64,
    is_complete: bool,
}

impl std::fmt::Debug for Carousel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Carousel").finish_non_exhaustive()
    }
}

impl Carousel {
    /// The carousel of a session that starts with `content`, and the channel by which the sending
    /// thread receives new instances.
    pub(super) fn new(
        options: &SendOptions,
        geometry: Geometry,
        slice_bytes: Option<u64>,
        content: &Content,
        pool: EncoderPool,
    ) -> (Self, Receiver<NextInstance>) {
        let (instances, taken) = unbounded();
        let count = content.objects.len() as u32;
        let state = State {
            names: names(content).cloned().collect(),
            sent: vec![Toi(1)..=Toi(count.into())],
            // The first descriptor has the number after the objects.
            next_toi: count + 2,
            added: Vec::new(),
            instance: 0,
            is_complete: false,
        };
        let options = options.clone();
        let (open, state) = (Descriptors::default(), Mutex::new(state));
        let carousel = Self { options, geometry, slice_bytes, pool, open, state, instances };
        (carousel, taken)
    }

    /// Examines and hashes files, or the files of directories, and holds them for the next
    /// [`go`](Self::go): all of them, or none.
    pub(crate) fn add(&self, paths: &[PathBuf]) -> Result<(), Error> {
        if paths.is_empty() {
            return Ok(());
        }
        let mut state = self.open_state()?;
        let Geometry { code, symbol_size } = self.geometry;
        let content_options = ContentOptions {
            files: paths,
            in_memory: &[],
            parts: &[],
            name: None,
            filter: &self.options.filter,
            code,
            symbol_size,
            block_symbols: self.options.max_block_symbols(),
            version: self.options.version(),
            content_encoding: ContentEncoding::Null,
            plain: true,
            signed: false,
            verifies: false,
            copies: None,
            workers: self.options.workers,
        };
        let (slice_bytes, first) = (self.slice_bytes, state.next_toi);
        let mut content = Content::compound(&content_options, slice_bytes, first, &self.open)?;
        // All of it is added, or nothing.
        if let Some(error) = content.left_out.pop().and_then(Arc::into_inner) {
            return Err(error);
        }
        if let Some(name) = names(&content).find(|name| state.names.contains(name)) {
            let first = PathBuf::from(name.to_string());
            let second = second(paths, &first);
            return Err(SetupError::SameName { first, second }.into());
        }
        state.names.extend(names(&content).cloned());
        state.next_toi += content.objects.len() as u32;
        state.added.push(content);
        Ok(())
    }

    /// Sends what was added. `is_complete`: no file will be added later.
    pub(crate) fn go(&self, is_complete: bool) -> Result<(), Error> {
        let mut state = self.open_state()?;
        if state.added.is_empty() && !is_complete {
            return Ok(());
        }
        let added = state.added.iter().flat_map(|content| &content.objects);
        let (first, last) = (added.clone().map(|o| o.toi).min(), added.map(|o| o.toi).max());
        let mut sent = state.sent.clone();
        sent.extend(first.zip(last).map(|(first, last)| first..=last));
        let instance = CarouselInstance {
            is_complete,
            id: Some(state.instance + 1),
            objects: sent.clone(),
            ..CarouselInstance::default()
        };
        if u64::from(state.next_toi) > MAX_OBJECTS {
            return Err(SetupError::NoFurtherFiles(
                "it has as many objects as one session can have",
            )
            .into());
        }
        let descriptor = descriptor(self.geometry, Toi(state.next_toi.into()), &instance)?;
        let contents = std::mem::take(&mut state.added);
        let next = NextInstance {
            objects: contents
                .iter()
                .flat_map(|c| send_objects(c, self.options.source_pass))
                .collect(),
            encoders: contents.iter().flat_map(|content| self.pool.encoders(content)).collect(),
            source_symbols: contents.iter().map(Content::source_symbols).sum(),
            control: vec![descriptor],
        };
        if self.instances.send(next).is_err() {
            return Err(SetupError::NoFurtherFiles("it has ended").into());
        }
        state.sent = sent;
        state.next_toi += 1;
        state.instance += 1;
        state.is_complete = is_complete;
        Ok(())
    }

    fn open_state(&self) -> Result<MutexGuard<'_, State>, Error> {
        // The state is consistent also after a panic.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_complete {
            return Err(SetupError::NoFurtherFiles("it was finished").into());
        }
        Ok(state)
    }
}

/// The first descriptor of a session.
pub(super) fn first_descriptor(
    geometry: Geometry,
    content: &Content,
    growing: bool,
) -> Result<ControlObject, Error> {
    let count = content.objects.len() as u128;
    let instance = CarouselInstance {
        is_complete: !growing,
        // A single, complete instance needs no number (RFC 6968, section 2.2).
        id: growing.then_some(0),
        objects: vec![Toi(1)..=Toi(count)],
        ..CarouselInstance::default()
    };
    descriptor(geometry, Toi(count + 1), &instance)
}

fn descriptor(
    Geometry { code, symbol_size }: Geometry,
    toi: Toi,
    instance: &CarouselInstance,
) -> Result<ControlObject, Error> {
    let bytes = instance.emit();
    // Packets of content have EXT_FTI as well.
    let oti = geometry::plain_control_oti(code, bytes.len(), symbol_size);
    Ok(ControlObject::new(toi, oti, &bytes, None, 1)?)
}

/// The objects of `content` for the protocol.
pub(super) fn send_objects(
    content: &Content,
    source_pass: bool,
) -> impl Iterator<Item = SendObject> {
    content.objects.iter().map(move |object| SendObject {
        toi: object.toi,
        layout: *object.source.layout(),
        source_pass,
    })
}

/// Which of the paths has the files of this name.
fn second(paths: &[PathBuf], name: &Path) -> PathBuf {
    let has_it = |path: &&PathBuf| path.file_name().is_some_and(|last| name.starts_with(last));
    paths.iter().find(has_it).or(paths.first()).cloned().unwrap_or_default()
}

fn names(content: &Content) -> impl Iterator<Item = &RelativePath> {
    content.manifest.entries().iter().map(fontana_wire::Entry::path)
}
