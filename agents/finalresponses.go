package agents

import (
	"orchestrator/wire/delegation"
)

// finalResponses holds the latest final responses that a connection has sent. Older ones are
// dropped: the orchestrator knows the outcome of their tasks.
type finalResponses struct {
	byTask map[string]*finalWord
	order  []*finalWord
	size   int
}

// finalWord is a final response.
type finalWord struct {
	task     string
	line     []byte
	metadata delegation.Metadata
	again    bool // a repeated request is done again
	instead  bool // it replaced a final response that was refused
	tries    int  // how often it was refused for the rate limit; used by the serving goroutine
}

// add adds a response. It replaces an older one of the same task.
func (f *finalResponses) add(word *finalWord) {
	if f.byTask == nil {
		f.byTask = make(map[string]*finalWord)
	}
	f.byTask[word.task] = word
	f.order = append(f.order, word)
	f.size += len(word.line)
	for len(f.order) > 1 && (f.size > maxLately || len(f.order) > remembered) {
		oldest := f.order[0]
		f.order[0], f.order = nil, f.order[1:]
		f.size -= len(oldest.line)
		if f.byTask[oldest.task] == oldest {
			delete(f.byTask, oldest.task)
		}
	}
}
