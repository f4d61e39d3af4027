package stdin

// How much room a mailbox has, and those who wait for it.

func (m *Mailbox) full() bool { return m.lines+m.taken >= m.Limits.Messages }

// moving is closed when something was taken. The lock is held.
func (m *Mailbox) moving() <-chan struct{} {
	if m.room == nil {
		m.room = make(chan struct{})
	}
	return m.room
}

// Reserve says that so many answers will be put, or, below zero, that they will not
// be for now.
func (m *Mailbox) Reserve(answers int) {
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

// Await waits until the mailbox is less than half full, with what is owed. It
// is for the agent's own reader: one that asks without reading the answers
// stands still, and no other does.
func (m *Mailbox) Await() {
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
func (m *Mailbox) roomy() bool {
	return (m.lines+m.taken+m.reserved)*2 < max(m.Limits.Messages, 2) && m.bytes*2 < m.Limits.Bytes
}

// PageRoom is how much of what can wait may be put at once, if any may: a quarter
// of what there is room for, so that there is room beside it for what cannot.
func (m *Mailbox) PageRoom() (Limits, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Limits{Messages: max(m.Limits.Messages/4, 1), Bytes: max(m.Limits.Bytes/4, 1)}, m.roomy()
}

// WhenRoomy has something done once, when the mailbox is less than half full. A
// mailbox that is given up does nothing.
func (m *Mailbox) WhenRoomy(do func()) { m.when(m.roomy, &m.onRoom, do) }

// WhenDrained is WhenRoomy for what is still to be made: that is owed, and so what is
// owed does not count. It is done too when the mailbox is given up: see takes.
func (m *Mailbox) WhenDrained(do func()) { m.when(m.light, &m.onDrained, do) }

// IsDrained reports whether the mailbox is less than half full without what is owed.
func (m *Mailbox) IsDrained() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.light()
}

func (m *Mailbox) light() bool {
	return (m.lines+m.taken)*2 < max(m.Limits.Messages, 2) && m.bytes*2 < m.Limits.Bytes
}

// Takes reports whether anything can still be put, be it when there is room.
func (m *Mailbox) Takes() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.over && !m.ending
}

// AllowsBeside reports whether more may wait beside the mailbox than does already: as much as in
// it. What it says false of it counts as refused.
func (m *Mailbox) AllowsBeside(beside Limits) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if beside.Messages < m.Limits.Messages && beside.Bytes < m.Limits.Bytes {
		return true
	}
	m.refused++
	return false
}

func (m *Mailbox) when(so func() bool, later *[]func(), do func()) {
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

// EndWaits ends all waiting for room, for good.
func (m *Mailbox) EndWaits() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = true
	m.makeRoom()
}

// relieved is what is to be done now that there is room. The lock is held.
func (m *Mailbox) relieved() (now []func()) {
	if m.light() {
		now, m.onDrained = m.onDrained, nil
	}
	if m.roomy() {
		now, m.onRoom = append(now, m.onRoom...), nil
	}
	return now
}

// makeRoom wakes those who wait for room. The lock is held.
func (m *Mailbox) makeRoom() {
	if m.room != nil {
		close(m.room)
		m.room = nil
	}
}

// Moved returns what is closed when the writer next takes something, and
// whether it ever will.
func (m *Mailbox) Moved() (moved <-chan struct{}, taking bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.moving(), !m.over && !m.ending
}

// Closed is a mailbox of a process without stdin: it takes nothing.
func Closed() *Mailbox { return &Mailbox{over: true} }
