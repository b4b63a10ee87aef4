//! What an adversary may push.
