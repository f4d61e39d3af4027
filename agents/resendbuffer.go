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
func (r *resendBuffer) add(sent *Sent, line []byte) {
	w := &written{sent: sent, line: line}
	sent.written = w
	r.order = append(r.order, w)
	r.size += len(line)
	for len(r.order) > 1 && (r.size > maxLately || len(r.order) > remembered) {
		oldest := r.order[0]
		r.order[0], r.order = nil, r.order[1:]
		r.size -= len(oldest.line)
		if oldest.sent.written == oldest { // it was not written again since
			oldest.sent.written = nil
		}
	}
}

// take removes and returns the line of a message, or returns nil if it is gone.
func (r *resendBuffer) take(sent *Sent) []byte {
	w := sent.written
	if w == nil {
		return nil
	}
	sent.written = nil
	return w.line
}
