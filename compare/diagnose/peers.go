package diagnose

import "slices"

// Peers are the wrong entries of other roles with the program of the searched role. A port has one number for all operations of a kind, such as one epsilon for its
// norms. One role may have too few elements to prove the number, or several mistakes may give the elements of one role. A mistake that also gives all elements of
// the peers is the simplest explanation.

// askPeers keeps the matches that the peers confirm. Mistakes with too few elements of their own are matches if the peers confirm them. If the peers confirm no
// mistake, the numbers of the formula are solved from the entries and the peers together. Without a confirmed mistake, the matches stay.
func askPeers(s *search) error {
	t := s.first.signed(s.m)
	if s.m.Peers == nil || s.cautious || len(s.found)+len(s.little) == 0 || len(t.Numbers()) == 0 {
		return nil
	}
	peers, err := s.m.Peers()
	if len(peers) == 0 || err != nil {
		return err
	}
	confirmed, err := confirmedBy(s, peers, append(slices.Clone(s.found), s.little...))
	if err != nil {
		return err
	}
	if len(confirmed) == 0 {
		if confirmed, err = solvedWith(s, peers); err != nil {
			return err
		}
	}
	if len(confirmed) == 0 {
		return nil
	}
	s.found = confirmed
	s.thin, err = confirmedBy(s, peers, s.thin)
	return err
}

// confirmedBy lists the matches that give all elements of the peers.
func confirmedBy(s *search, peers []*Entry, all []survivor) (confirmed []survivor, err error) {
	for _, o := range all {
		if gives, err := givesPeers(s, peers, o.hypothesis); err != nil {
			return nil, err
		} else if gives {
			confirmed = append(confirmed, o)
		}
	}
	return confirmed, s.err
}

// givesPeers reports whether a mistake of steps gives all elements of the peers, and enough that the right operation does not give.
func givesPeers(s *search, peers []*Entry, h hypothesis) (bool, error) {
	if _, steps := s.edit(h.is); !steps || h.statement != nil || h.is.First != "" {
		return false, nil
	}
	shown, rows := 0, 0
	for _, e := range peers {
		d := s.apply(h.is, e)
		if d == nil || len(d.In)+len(d.W) > 0 || s.spent() {
			return false, s.err
		}
		s.tried++
		p, call := d.Whole(e.Call)
		s.whole(p)
		all, n, r, err := e.Explains(p, call)
		if !all || err != nil {
			return false, outside(err)
		}
		shown, rows = shown+n, rows+r
	}
	return shown >= shownElements+h.solved && rows >= shownRows, nil
}

// solvedWith solves each number of the formula from the entries and the peers together.
func solvedWith(s *search, peers []*Entry) (confirmed []survivor, err error) {
	t := s.first.signed(s.m)
	entries := append(slices.Clone(s.entries[:min(len(s.entries), mostSolved)]), peers[:min(len(peers), mostSolved)]...)
	for _, i := range t.Numbers() {
		f := numberFamily(s, t, i)
		found, little := s.found, s.little
		s.found, s.little = nil, nil
		solveIn(s, entries, f, func(m Mistake) bool {
			h := s.hypothesis(m)
			h.solved++
			return !s.failed(s.try(h)) && len(s.found)+len(s.little) == 0
		})
		all := append(s.found, s.little...)
		s.found, s.little = found, little
		if s.err != nil {
			return nil, s.err
		}
		if confirmed, err = confirmedBy(s, peers, all); len(confirmed) > 0 || err != nil {
			return confirmed, err
		}
	}
	return nil, nil
}
