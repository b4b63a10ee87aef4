//! Plain FLUTE senders as they live: wrong packets, restarts, updates. Packet by packet, in virtual
//! time.

mod sender;
mod wrong;
