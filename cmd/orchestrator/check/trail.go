package check

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A trail is the result of all requests of the program, from the supervisor's audit.
type trail struct {
	granted  int
	at       []time.Time // times of the first requests
	refusals []refusal
}

// A refusal is a kind of rejected messages.
type refusal struct {
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
func (r *run) ReadTrail(stateDir string) error {
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

func (r *run) readTrail(name string) error {
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

func (r *run) step(line []byte) {
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
var named = pattern(`"[^"]*"|[0-9a-f]{8}[0-9a-f-]*`)

func (t *trail) refused(e *entry) {
	alike := func(r refusal) bool {
		return r.Type == e.Type && r.Code == e.Outcome && named().ReplaceAllString(r.Why, "") == named().ReplaceAllString(e.Why, "")
	}
	if e.Outcome == wire.CodeLimited { // of any type
		alike = func(r refusal) bool { return r.Code == wire.CodeLimited }
	}
	if i := slices.IndexFunc(t.refusals, alike); i >= 0 {
		t.refusals[i].Count++
		return
	}
	if len(t.refusals) < kindsKept {
		t.refusals = append(t.refusals, refusal{
			Type: e.Type, Code: e.Outcome, Why: e.Why, ID: clip(e.ID), Count: 1,
		})
	}
}

// ofCancelled reports whether a refusal is only due to a cancelled task, which the program could
// not know.
func (r *refusal) ofCancelled() bool {
	return r.Code == wire.CodeConflict && strings.Contains(r.Why, " is cancelled ")
}

// Refusals returns the refusals that are a fault of the program.
func (r *run) Refusals() []refusal {
	return slices.DeleteFunc(slices.Clone(r.trail.refusals), func(one refusal) bool { return one.ofCancelled() })
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

// refused adds findings for rejected messages.
func (f *Findings) refused(refusals []refusal) {
	for i := range refusals {
		r := &refusals[i]
		check, cure := cureOf(r)
		verdict, what := Fail, "refused"
		if strings.HasPrefix(r.Type, "event:") {
			verdict, what = Warn, "ignored" // an event gets no response
		}
		if check == "rate" {
			f.add(Fail, check, cure, "floods: %s over the limit of messages per second, first %s", term.Count(r.Count, "message"), r.Type)
			continue
		}
		times := ""
		if r.Count > 1 {
			times = ", " + term.Count(r.Count, "time")
		}
		id := ""
		if r.ID != "" && r.ID != "null" {
			id = ", id " + r.ID
		}
		f.add(verdict, check, cure, "%s: %s%s: %s%s", what, wire.Visible(r.Type), id, term.OneLine(r.Why), times)
	}
}

// cureOf returns the kind of mistake behind a refusal, and how to fix it.
func cureOf(r *refusal) (check, cure string) {
	why := r.Why
	ofTask := aboutTasks[r.Type] || r.Type == "request:get-task" || strings.HasPrefix(r.Type, "event:")
	switch {
	case r.Code == wire.CodeLimited:
		return "rate", "Report progress at most once a second, and print text for people as plain lines; or raise protocol.rate"
	case strings.HasPrefix(why, "this id was used"):
		return "ids", "Use a new id for every message: a UUID or a counter"
	case strings.Contains(why, "ISO 8601") || strings.HasPrefix(why, "timestamp "):
		return "timestamps", "Send the time in UTC, for example 2026-11-20T14:33:00Z: date -u +%FT%TZ, new Date().toISOString()"
	case r.Code == wire.CodeUnknownType:
		return "types", "Use a type that orchestrator schema lists. If it is log output, print it without an id"
	case r.Code == wire.CodeConflict && ofTask && ended(why):
		return "task-once", "Report the end of a task once, and send no messages about it afterwards"
	case r.Code == wire.CodeNotFound && ofTask:
		return "task-ids", "Use the exact payload.taskId of notify:task-assigned"
	case strings.Contains(why, "nests too deeply"):
		return oddNested, remedies[oddNested].cure
	case r.Code == wire.CodeDenied:
		return "names", "Leave out agentId, or send $ORC_AGENT_ID"
	case r.Code == wire.CodeInvalid && (strings.HasPrefix(r.Type, "request:") || strings.HasPrefix(r.Type, "event:")):
		return "messages", "Its format: orchestrator schema " + r.Type + "     Check yours: orchestrator schema --check FILE"
	}
	return "messages", "All messages: orchestrator help protocol"
}

// ended reports whether a refusal is about a task that has ended.
func ended(why string) bool {
	for _, state := range []string{"done", "failed", "completed"} {
		if strings.Contains(why, " is "+state) {
			return true
		}
	}
	return false
}

// A remedy is the finding for a kind of oddity.
type remedy struct {
	verdict Verdict
	text    string
	cure    string
}

var remedies = map[string]remedy{
	oddType: {Warn, `prints JSON with a "type" that is not a message type: treated as log`,
		"Message types begin with request: or event: (orchestrator schema). For log output use another key, for example level"},
	oddJSON: {Warn, "prints lines that are almost JSON: treated as log",
		"Encode it with a library (json.dumps, JSON.stringify, jq -c), without a comma at the end"},
	oddKeys: {Fail, "prints an object with a duplicate key: treated as log",
		"Write each key once: parsers read duplicates differently"},
	oddNested: {Fail, "prints an object that nests too deeply: treated as log",
		"Flatten it, send it as text, or raise protocol.max_depth"},
	oddTorn: {Fail, "tears lines: a message begins in the middle of another one, and both are lost",
		"Let one writer at a time print each whole line, with its \\n, in a single write"},
	oddBehind: {Warn, "prints a message after other text on the same line: treated as log",
		"Print each message on a separate line, with one writer at a time, and text for people to stderr"},
	oddSpread: {Fail, "spreads a message over several lines: treated as log",
		"Print each object on one line, without indentation"},
	oddUTF8: {Warn, "prints lines that are not UTF-8: treated as log",
		"Write UTF-8: PYTHONIOENCODING=utf-8, LC_ALL=C.UTF-8"},
	oddMark: {Fail, "prints invisible characters before an object: treated as log",
		"Print no byte order mark and no colors: NO_COLOR=1, TERM=dumb"},
	oddStderr: {Fail, "prints messages to stderr, where every line is log",
		"Print messages to stdout, and only text for people to stderr"},
}

// lines adds findings for log lines that may have been meant as messages.
func (f *Findings) lines(list []oddity) {
	for _, one := range list {
		r := remedies[one.check]
		why := ""
		if one.why != "" {
			why = " (" + wire.Visible(one.why) + ")"
		}
		f.add(r.verdict, one.check, r.cure, "%s%s (%s): %s", r.text, why, term.Count(one.count, "line"), one.first)
	}
}
