//! The mirrors of a reception before it begins, and its beginning.

use super::Mirrors;
use super::begin::Waiting;
use super::missing::Parts;
use super::state::MirrorState;
use crate::error::Error;
use crate::receive::options::ReceiveOptions;
use crate::system::random_u64;
use crate::web::address::Site;
use crate::web::client::Access;
use crate::web::limit::RateLimit;
use crate::web::mirror::{Done, Mirror, Need, Report};
use crate::web::records::Records;
use crossbeam_channel::{bounded, unbounded};
use fontana_net::thread::{catch, spawn};
use fontana_proto::Instant;
use fontana_proto::pull::Pull;
use fontana_wire::ManifestLimits;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reports that wait. A mirror's thread waits for the deciding thread then, and TCP for it: 64 KiB
/// of symbols each.
const REPORTS: usize = 32;

/// The mirrors of a reception before it begins, and the authorities that they are checked with.
pub(in crate::receive) struct PreparedMirrors {
    pub(in crate::receive) sites: Vec<Site>,
    pub(in crate::receive) access: Access,
}

impl PreparedMirrors {
    /// The mirrors of the options. `None` if there are none.
    pub(in crate::receive) fn new(options: &ReceiveOptions) -> Option<Self> {
        let web = &options.web;
        let sites = Site::all(&web.mirrors, &web.files);
        (!sites.is_empty()).then(|| Self { sites, access: Access::new(&web.headers) })
    }

    /// Starts the threads of the mirrors. `limits` are those of a manifest.
    pub(in crate::receive) fn start(
        self,
        options: &ReceiveOptions,
        limits: ManifestLimits,
    ) -> Result<Mirrors, Error> {
        let Self { sites, access } = self;
        let (sender, reports) = bounded(REPORTS);
        let (mut pull, mut mirrors) = (Pull::new(), Vec::new());
        let rate = options.max_rate_bytes_per_second;
        let limit = rate.map(|rate| Arc::new(RateLimit::new(rate)));
        for (number, site) in sites.into_iter().enumerate() {
            let address = site.address.clone();
            let (orders, queue) = unbounded();
            let need = Arc::new(Need::default());
            let (reports, panics) = (sender.clone(), sender.clone());
            let mirror =
                Mirror { number, site, need: Arc::clone(&need), reports, limit: limit.clone() };
            let access = access.clone();
            let work = move || {
                if let Err(panic) = catch(|| mirror.run(&queue, &access)) {
                    let _ = panics.send(Report { mirror: number, what: Done::Panicked(panic) });
                }
            };
            // It ends by itself when its queue is dropped, but a name server may keep it waiting.
            drop(spawn("mirror", work)?);
            mirrors.push(MirrorState::new(address, pull.add_source(), orders, need));
        }
        Ok(Mirrors {
            pull,
            mirrors,
            reports,
            limits,
            expected: options.expectation.manifest,
            has_group: options.has_group,
            waiting: options.web.after.filter(|_| options.has_group).map(Waiting::new),
            files: None,
            content: None,
            has_holders: false,
            random: random_u64()?,
            records: Records::default(),
            parts: Parts::default(),
            wholes: BTreeMap::new(),
            wholes_served_at: Instant::ZERO,
            useful_at: Instant::ZERO,
            doubtful: BTreeMap::new(),
            is_dirty: false,
            looked_at: Instant::ZERO,
            wanted: 0,
            packets: 0,
            events: Vec::new(),
        })
    }
}
