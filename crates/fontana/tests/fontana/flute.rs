//! Plain FLUTE between Fontana and another implementation, the crate `flute`, over real sockets and
//! loopback multicast, in both directions; hostile sessions; and FCAST, by the same means.

mod errata;
mod fcast;
mod fontana_only;
mod fontana_side;
mod from_flute;
mod growing;
mod handmade;
mod hostile;
mod padding;
mod peer;
mod raptor;
mod selected;
mod tables;
mod to_flute;
mod updates;
