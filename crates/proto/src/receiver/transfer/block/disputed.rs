//! A block of which there are symbols with different bytes under one id
//! ([`ReceivedCopies`](crate::receiver::transfer::copies::ReceivedCopies)).

use super::{Block, Collecting, Sequel, State};
use fontana_fec::Esi;

impl Block {
    /// Solves the block again, without the symbols of which there are different copies, if it is
    /// not being worked on. If the others do not suffice, it waits for a choice.
    pub(super) fn leave_out_disputed(&mut self) {
        if !matches!(self.state, State::Collecting(_) | State::Disputed { .. }) {
            return;
        }
        let Ok(mut decoder) = self.decoder() else { return };
        let Some(copies) = &self.copies else { return };
        for esi in copies.undisputed() {
            // A decoder has no use for more symbols than it needs.
            let _ = decoder.push(esi);
        }
        self.state = State::Collecting(Collecting::new(decoder));
        self.choose_if_incomplete();
    }

    /// The symbols that are not disputed do not suffice, and all others were received: the block
    /// waits for a choice.
    pub(super) fn choose_if_incomplete(&mut self) {
        if let (State::Collecting(collecting), Some(copies)) = (&self.state, &self.copies)
            && collecting.symbols_wanted > 0
            && copies.may_choose()
        {
            self.state = self.dispute();
        }
    }

    /// The state of waiting for other copies, for as long as two cycles of a sender take.
    fn dispute(&self) -> State {
        let cycle = self.scheme.block_profile(self.source_symbols).symbols_per_cycle;
        State::Disputed { until: self.received.saturating_add(u64::from(cycle).saturating_mul(2)) }
    }

    /// The wrong symbols are not found: other copies of them may show which they are, if the
    /// symbols were compared since the block was corrupt first. If not, all are dropped.
    pub(super) fn dispute_or_restart(&mut self) -> Sequel {
        if self.copies.is_none() {
            return self.restart();
        }
        self.state = self.dispute();
        Sequel::Collects
    }

    /// Drops all symbols if no copies of them have led to anything for too long. Begins again, too,
    /// if the symbols that a search waits for are not sent.
    pub(in crate::receiver::transfer) fn give_up_waiting(&mut self) -> Option<Sequel> {
        if let State::Suspect(suspects) = &self.state {
            return suspects.are_all_that_is_sent().then_some(Sequel::Unlocated);
        }
        let has_waited = matches!(self.state, State::Disputed { until } if self.received >= until);
        (has_waited && !self.awaits_choice()).then(|| self.restart())
    }

    /// A choice among copies was made: those of the symbols in `chosen` are right. `None`: the
    /// block waits for others.
    pub(in crate::receiver::transfer) fn on_chosen(&mut self, chosen: Option<&[Esi]>) -> Sequel {
        let State::Choosing { until } = self.state else { return Sequel::Collects };
        self.state = State::Disputed { until };
        let (Some(chosen), Some(copies)) = (chosen, &mut self.copies) else {
            return Sequel::Collects;
        };
        let chosen = copies.on_chosen(chosen, &mut self.origins);
        let Ok(mut decoder) = self.decoder() else { return self.restart() };
        for esi in (0..self.source_symbols).map(Esi) {
            let _ = decoder.push(esi);
        }
        self.state = State::Collecting(Collecting::new(decoder));
        Sequel::Replaced(chosen)
    }

    pub(super) fn awaits_choice(&self) -> bool {
        matches!(self.state, State::Disputed { .. })
            && self.copies.as_ref().is_some_and(|copies| copies.may_choose())
    }

    /// Symbols that the block may have.
    pub(super) fn encoding_symbols(&self) -> u32 {
        self.scheme.block_profile(self.source_symbols).encoding_symbols
    }
}
