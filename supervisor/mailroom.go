package supervisor

// How much room a mailbox has, and those who wait for it.

func (m *mailbox) full() bool { return m.lines+m.taken >= m.bounds.Messages }

// moving is closed when something was taken. The lock is held.
func (m *mailbox) moving() <-chan struct{} {
	if m.room == nil {
		m.room = make(chan struct{})
	}
	return m.room
}

// reserve says that so many answers will be put, or, below zero, that they will not
// be for now.
func (m *mailbox) reserve(answers int) {
	m.mu.Lock()
	m.reserved = max(0, m.reserved+answers)
	var relief []func()
	if answers < 0 {
		m.makeRoom()
		relief = m.relieved()
	}
	m.mu.Unlock()
	for _, do := range relief {
		do()
	}
}

// await waits until the mailbox is less than half full, with what is owed. It
// is for the agent's own reader: one that asks without reading the answers
// stands still, and no other does.
func (m *mailbox) await() {
	for {
		m.mu.Lock()
		if m.over || m.ending || m.free || m.roomy() {
			m.mu.Unlock()
			return
		}
		moved := m.moving()
		m.mu.Unlock()
		<-moved
	}
}

// roomy reports whether the mailbox is less than half full, with what is owed. The
// lock is held.
func (m *mailbox) roomy() bool {
	return (m.lines+m.taken+m.reserved)*2 < max(m.bounds.Messages, 2) && m.bytes*2 < m.bounds.Bytes
}

// pageRoom is how much of what can wait may be put at once, if any may: a quarter
// of what there is room for, so that there is room beside it for what cannot.
func (m *mailbox) pageRoom() (MailboxLimits, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return MailboxLimits{Messages: max(m.bounds.Messages/4, 1), Bytes: max(m.bounds.Bytes/4, 1)}, m.roomy()
}

// whenRoomy has something done once, when the mailbox is less than half full. A
// mailbox that is given up does nothing.
func (m *mailbox) whenRoomy(do func()) { m.when(m.roomy, &m.onRoom, do) }

// whenLight is whenRoomy for what is still to be made: that is owed, and so what is
// owed does not count. It is done too when the mailbox is given up: see takes.
func (m *mailbox) whenLight(do func()) { m.when(m.light, &m.onDrained, do) }

func (m *mailbox) isLight() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.light()
}

func (m *mailbox) light() bool {
	return (m.lines+m.taken)*2 < max(m.bounds.Messages, 2) && m.bytes*2 < m.bounds.Bytes
}

// takes reports whether anything can still be put, be it when there is room.
func (m *mailbox) takes() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.over && !m.ending
}

// bears reports whether more may wait beside the mailbox than does already: as much as in
// it. What it says false of it counts as refused.
func (m *mailbox) bears(beside MailboxLimits) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if beside.Messages < m.bounds.Messages && beside.Bytes < m.bounds.Bytes {
		return true
	}
	m.refused++
	return false
}

func (m *mailbox) when(so func() bool, later *[]func(), do func()) {
	m.mu.Lock()
	now := so()
	if !now {
		*later = append(*later, do)
	}
	m.mu.Unlock()
	if now {
		do()
	}
}

// setFree ends all waiting for room, for good.
func (m *mailbox) setFree() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = true
	m.makeRoom()
}

// relieved is what is to be done now that there is room. The lock is held.
func (m *mailbox) relieved() (now []func()) {
	if m.light() {
		now, m.onDrained = m.onDrained, nil
	}
	if m.roomy() {
		now, m.onRoom = append(now, m.onRoom...), nil
	}
	return now
}

// makeRoom wakes those who wait for room. The lock is held.
func (m *mailbox) makeRoom() {
	if m.room != nil {
		close(m.room)
		m.room = nil
	}
}
