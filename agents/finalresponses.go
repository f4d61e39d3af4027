package agents

import "orchestrator/wire"

// finalResponses are the final responses that a connection has said latest. One that is gone
// is known no more: the orchestrator knows what came of it.
type finalResponses struct {
	byTask map[string]*finalWord
	order  []*finalWord
	size   int
}

// finalWord is a final response.
type finalWord struct {
	task     string
	line     []byte
	metadata wire.TaskMetadata
	again    bool // who asks for the same once more wants it to be done once more
	instead  bool // of another one, which was refused
	tries    int  // how often it was refused because there was too much; for the one who serves
}

// add remembers one, in the place of an older one of its task.
func (f *finalResponses) add(word *finalWord) {
	if f.byTask == nil {
		f.byTask = make(map[string]*finalWord)
	}
	f.byTask[word.task] = word
	f.order = append(f.order, word)
	f.size += len(word.line)
	for len(f.order) > 1 && (f.size > mostLately || len(f.order) > remembered) {
		oldest := f.order[0]
		f.order[0], f.order = nil, f.order[1:]
		f.size -= len(oldest.line)
		if f.byTask[oldest.task] == oldest {
			delete(f.byTask, oldest.task)
		}
	}
}
