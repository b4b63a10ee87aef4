//! Plain FLUTE senders as they live: wrong packets, restarts, updates. Packet by packet, in virtual
//! time.

mod expiry;
mod restart;
mod sender;
mod updates;
mod watched;
mod words;
mod wrong;
