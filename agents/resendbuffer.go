package agents

// maxLately bounds the bytes of lines kept for sending again.
const maxLately = 8 << 20

// resendBuffer holds the latest written lines of session messages. Refusals arrive soon, so the
// oldest lines are dropped first. A message whose line is gone is not sent again.
type resendBuffer struct {
	order []*written
	size  int
}

// written is a line, and its message.
type written struct {
	sent *Sent
	line []byte
}

// add keeps the line of a message that is about to be written.
func (l *resendBuffer) add(sent *Sent, line []byte) {
	w := &written{sent: sent, line: line}
	sent.written = w
	l.order = append(l.order, w)
	l.size += len(line)
	for len(l.order) > 1 && (l.size > maxLately || len(l.order) > remembered) {
		oldest := l.order[0]
		l.order[0], l.order = nil, l.order[1:]
		l.size -= len(oldest.line)
		if oldest.sent.written == oldest { // it was not written again since
			oldest.sent.written = nil
		}
	}
}

// take removes and returns the line of a message, or returns nil if it is gone.
func (l *resendBuffer) take(sent *Sent) []byte {
	w := sent.written
	if w == nil {
		return nil
	}
	sent.written = nil
	return w.line
}
