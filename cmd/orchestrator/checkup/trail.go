package checkup

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A trail is the result of all requests of the program, from the supervisor's audit.
type trail struct {
	granted  int
	at       []time.Time // times of the first requests
	refusals []Refusal
}

// A Refusal is a kind of rejected messages.
type Refusal struct {
	Type  string // type of the message
	Code  wire.Code
	Why   string
	ID    string // id of the first one, unchanged
	Count int
}

// An entry is a line of the audit.
type entry struct {
	At      string    `json:"at"`
	Actor   string    `json:"actor"`
	Type    string    `json:"type"`
	ID      wire.Raw  `json:"id"`
	Outcome wire.Code `json:"outcome"`
	Why     string    `json:"why"`
}

// kindsKept is the maximum number of kinds of refusals.
const kindsKept = 64

// ReadTrail reads the audit in a state directory. The run must be over.
func (r *Run) ReadTrail(stateDir string) error {
	files, err := filepath.Glob(filepath.Join(stateDir, "audit", "*.jsonl"))
	if err != nil {
		return err
	}
	slices.Sort(files)
	for _, name := range files {
		if err := r.readTrail(name); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) readTrail(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReader(file)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		r.step(line)
	}
}

func (r *Run) step(line []byte) {
	if !bytes.Contains(line, []byte(`"agent:`)) {
		return
	}
	var e entry
	if object.DecodeOwn(line, &e) != nil || e.Actor != "agent:"+r.Agent {
		return
	}
	at, _ := time.Parse(time.RFC3339Nano, e.At)
	r.speaks(at)
	if len(r.trail.at) < saidKept {
		r.trail.at = append(r.trail.at, at)
	}
	r.Working = r.Working || aboutTasks[e.Type]
	if e.Outcome == "granted" {
		r.trail.granted++
		return
	}
	r.trail.refused(&e)
}

// aboutTasks are the requests that an agent makes only for a task that it knows.
var aboutTasks = map[string]bool{
	"request:start-task": true, "request:complete-task": true, "request:fail-task": true, "request:request-help": true,
}

// named matches the parts of a reason that differ between messages.
var named = regexp.MustCompile(`"[^"]*"|[0-9a-f]{8}[0-9a-f-]*`)

func (t *trail) refused(e *entry) {
	alike := func(r Refusal) bool {
		return r.Type == e.Type && r.Code == e.Outcome && named.ReplaceAllString(r.Why, "") == named.ReplaceAllString(e.Why, "")
	}
	if e.Outcome == wire.CodeLimited { // of any type
		alike = func(r Refusal) bool { return r.Code == wire.CodeLimited }
	}
	if i := slices.IndexFunc(t.refusals, alike); i >= 0 {
		t.refusals[i].Count++
		return
	}
	if len(t.refusals) < kindsKept {
		t.refusals = append(t.refusals, Refusal{
			Type: e.Type, Code: e.Outcome, Why: e.Why, ID: clip(e.ID), Count: 1,
		})
	}
}

// ofCancelled reports whether a refusal is only due to a cancelled task or a stop, which
// the program could not know.
func (r *Refusal) ofCancelled() bool {
	return r.Code == wire.CodeConflict && strings.Contains(r.Why, " is cancelled ") ||
		r.Code == wire.CodeConflict && strings.Contains(r.Why, "stop has begun")
}

// Refusals returns the refusals that are a fault of the program.
func (r *Run) Refusals() []Refusal {
	return slices.DeleteFunc(slices.Clone(r.trail.refusals), func(one Refusal) bool { return one.ofCancelled() })
}

// stampOf returns the timestamp of the request that caused a fact.
func stampOf(payload wire.Raw) string {
	var fact struct {
		Request struct {
			Timestamp string `json:"timestamp"`
		} `json:"request"`
	}
	if object.DecodeOwn(payload, &fact) != nil {
		return ""
	}
	return fact.Request.Timestamp
}
