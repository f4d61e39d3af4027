package match

// qualify keeps the candidates that meet all hard demands, and reports whether any is left.
func (x *Index) qualify(c Conditions) bool {
	s := &x.search
	s.start(x.words, c, x.cell(c.Not))
	for _, cells := range s.all {
		s.blank()
		s.gather(cells)
		s.keep()
	}
	if s.anyOf {
		s.blank()
		for _, cells := range s.any {
			s.gather(cells)
		}
		s.keep()
	}
	return len(s.among) > 0
}

// cell returns the set of one agent. The set of an unknown agent matches nothing.
func (x *Index) cell(name string) cell {
	slot, known := x.slots[name]
	if name == "" || !known {
		return cell{word: -1}
	}
	word, bit := place(slot)
	return cell{word: word, bits: bit}
}

// start sets the candidates to the holders of the rarest needed value, or to all agents.
func (s *search) start(words []word, c Conditions, not cell) {
	if s.lead == nil {
		for at := range words {
			s.consider(cell{word: int32(at), bits: words[at].ready(c)}, not)
		}
		return
	}
	for _, l := range s.lead {
		s.consider(cell{word: l.word, bits: l.bits & words[l.word].ready(c)}, not)
	}
}

func (s *search) consider(c, not cell) {
	if c.word == not.word {
		c.bits &^= not.bits
	}
	if c.bits != 0 {
		s.among = append(s.among, c)
	}
}

// ready returns the agents that may get a task at all.
func (w *word) ready(c Conditions) uint64 {
	bits := w.offering & w.room
	if c.Online {
		bits &= w.online
	}
	if c.Free {
		bits &= w.free
	}
	return bits
}

// gather adds the holders of a value to held.
func (s *search) gather(cells []cell) {
	among, held := s.among, s.held
	for i, j := 0, 0; i < len(among) && i < len(held) && j < len(cells); {
		switch here, there := among[i].word, cells[j].word; {
		case here == there:
			held[i] |= cells[j].bits
			i++
			j++
		case here < there:
			i = seek(among, i+1, there)
		default:
			j = seek(cells, j+1, here)
		}
	}
}

// keep drops the candidates that are not in held.
func (s *search) keep() {
	kept := 0
	for i, c := range s.among {
		c.bits &= s.held[i]
		s.among[kept] = c
		if c.bits != 0 {
			kept++
		}
	}
	s.among = s.among[:kept]
}

// blank empties held.
func (s *search) blank() { s.held = extended(s.held[:0], len(s.among)) }
