package stdin

// The room in a mailbox, and the callers that wait for it.

func (m *Mailbox) full() bool { return m.lines+m.taken >= m.options.Limits.Messages }

// moving returns a channel that is closed when lines were written. m.mu must be held.
func (m *Mailbox) moving() <-chan struct{} {
	if m.room == nil {
		m.room = make(chan struct{})
	}
	return m.room
}

// Reserve adds to the number of answers that will be put; a negative number takes them back.
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

// Await waits until the mailbox, with the reserved answers, is less than half full. The reader
// of the agent's output calls it. So an agent that sends requests without reading the answers
// stops only itself.
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

// roomy reports whether the mailbox, with the reserved answers, is less than half full. m.mu
// must be held.
func (m *Mailbox) roomy() bool {
	return (m.lines+m.taken+m.reserved)*2 < max(m.options.Limits.Messages, 2) && m.bytes*2 < m.options.Limits.Bytes
}

// PageRoom returns the size of the next page of retriable lines, and whether there is room for
// it. The size is a quarter of the limits, which leaves room for other lines.
func (m *Mailbox) PageRoom() (Limits, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Limits{Messages: max(m.options.Limits.Messages/4, 1), Bytes: max(m.options.Limits.Bytes/4, 1)}, m.roomy()
}

// WhenRoomy calls do once, when the mailbox is less than half full. It does not call do if the
// mailbox is given up.
func (m *Mailbox) WhenRoomy(do func()) { m.when(m.roomy, &m.onRoom, do) }

// NotifyRoom is like WhenRoomy, but has no effect while an earlier call of it waits.
func (m *Mailbox) NotifyRoom(do func()) {
	m.mu.Lock()
	waits := m.notifies
	m.notifies = true
	m.mu.Unlock()
	if waits {
		return
	}
	m.WhenRoomy(func() {
		m.mu.Lock()
		m.notifies = false // before the call: later losses need a new one
		m.mu.Unlock()
		do()
	})
}

// WhenDrained is like WhenRoomy, but ignores the reserved answers, for lines that are reserved
// themselves. It also calls do if the mailbox is given up: see Takes.
func (m *Mailbox) WhenDrained(do func()) { m.when(m.light, &m.onDrained, do) }

// IsDrained reports whether the mailbox, without the reserved answers, is less than half full.
func (m *Mailbox) IsDrained() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.light()
}

func (m *Mailbox) light() bool {
	return (m.lines+m.taken)*2 < max(m.options.Limits.Messages, 2) && m.bytes*2 < m.options.Limits.Bytes
}

// Takes reports whether entries can still be put, now or when there is room.
func (m *Mailbox) Takes() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.over && !m.ending
}

// AllowsBeside reports whether more lines may wait outside the mailbox, with the same limits as
// inside. If not, it counts a refused message.
func (m *Mailbox) AllowsBeside(beside Limits) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if beside.Messages < m.options.Limits.Messages && beside.Bytes < m.options.Limits.Bytes {
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

// EndWaits ends all waiting for room permanently.
func (m *Mailbox) EndWaits() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = true
	m.makeRoom()
}

// relieved returns the functions to call now that there is room. m.mu must be held.
func (m *Mailbox) relieved() (now []func()) {
	if m.light() {
		now, m.onDrained = m.onDrained, nil
	}
	if m.roomy() {
		now, m.onRoom = append(now, m.onRoom...), nil
	}
	return now
}

// makeRoom wakes the callers that wait for room. m.mu must be held.
func (m *Mailbox) makeRoom() {
	if m.room != nil {
		close(m.room)
		m.room = nil
	}
}

// Moved returns a channel that is closed when lines were written, and whether that can still
// happen.
func (m *Mailbox) Moved() (moved <-chan struct{}, taking bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.moving(), !m.over && !m.ending
}

// Closed returns a mailbox for a process without stdin, which refuses every entry.
func Closed() *Mailbox { return &Mailbox{over: true} }
