//! The mirrors of a reception before it begins, and its beginning.

use super::begin::Waiting;
use super::state::MirrorState;
use super::{Common, Mirrors};
use crate::error::Error;
use crate::receive::options::ReceiveOptions;
use crate::system::random_u64;
use crate::web::address::Site;
use crate::web::client::Access;
use crate::web::limit::RateLimit;
use crate::web::mirror::{Done, Mirror, Need, Report};
use crossbeam_channel::{bounded, unbounded};
use fontana_net::thread::{catch, spawn};
use fontana_proto::pull::Pull;
use fontana_wire::ManifestLimits;
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
        let mut sites = Site::all(&web.mirrors, &web.files);
        sites.extend(Site::of_ticket(&web.of_ticket, &web.senders));
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
            mirrors.push(MirrorState::new(number, address, pull.add_source(), orders, need));
        }
        let waiting = options.web.after.filter(|_| options.has_group).map(Waiting::new);
        Ok(Mirrors::new(
            mirrors,
            Common::new(pull, random_u64()?),
            reports,
            (options.expectation.manifest, limits),
            (options.has_group, waiting),
        ))
    }
}
