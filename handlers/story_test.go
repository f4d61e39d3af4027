package handlers

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/history"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
	"orchestrator/wire/stdio"
)

var update = flag.Bool("update", false, "write what the stories and tables say now into their files")

// TestStories plays every file in testdata/story. A story is a script with the outcome of each
// line indented below it:
//
//   - SEQ KIND FROM -> TO PAYLOAD    a record
//     AGENT <- response:… ID PAYLOAD   a reply, as on the wire
//     AGENT <- notify:… PAYLOAD        a notification
//     AGENT <= TYPE ID …               a session message, or a message about delegated work
//     (…)                              anything else
//
// The lines of a script are:
//
//	rules: timeout=10s dependency-failure=block keep=2
//	able NAME DOCUMENT               the capabilities in the next configuration
//	acts NAME ACTOR                  the actor in the next configuration
//	agents: NAME(ROLE; CAPABILITIES; CAPACITY; ON-EXIT) …   the configuration
//	up, stopping                     the orchestrator starts, or begins to stop
//	restart                          it is killed, and its log is read again
//	start AGENT                      a process starts; its run is AGENT.1, AGENT.2 …
//	exit AGENT CODE                  it exits by itself: a number, or a signal
//	stop AGENT CODE                  it exits because it was told to
//	event KIND [AGENT]               another event of the supervisor
//	checked KIND TASK                what was done for a task: workspace, merged, unmerged, unchanged
//	> AGENT ID OPERATION PAYLOAD     a request; AGENT@RUN is another run
//	                                 hub:submit-task takes a task in the form of the hub
//	> AGENT event:NAME PAYLOAD       an event
//	                                 wide:AGENT also acts on tasks of other agents,
//	                                 strict:AGENT sends each step separately,
//	                                 actor:ID is an external actor, operator:NAME
//	                                 is a person with a token
//	resend AGENT ID                  the last granted request of that id again, unchanged
//	session NAME architect=A …       a session of the next configuration
//	say FROM TO ID TYPE KEY=VALUE …  a session message: see sessionplay_test.go
//	again AGENT ID                   the line of that id again
//	takes AGENT                      everything on its way to the agent was written
//	has AGENT ID, hasnot AGENT ID    a message was written to the agent's stdin, or not
//	request, act, respond            delegated work: see delegateplay_test.go
//	gone AGENT                       the agent has ended, and is not restarted
//	show NAME                        a session, with its log
//	told AGENT $TASK                 the notification was written
//	lost AGENT $TASK                 the notification could not be written
//	told AGENT response ID           the latest response was written; with update: the latest
//	                                 input; with only the id: the request or act of
//	                                 delegated work
//	at +31s                          the time since the beginning
//	clock 1h                         the clock of the machine is set
//	wait                             until the next deadline has passed
//	late                             a deadline is noticed late: there was no input meanwhile
//	counts, holds AGENT, events      the views for people
//
// Tasks are named by their names; $NAME is the id of one. Times are relative to the beginning.
//
// Every story is played again from its records. They must give an equal State. It is also continued
// from a snapshot after each line, with the same outcome.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/story/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			told := tellStory(t, string(text))
			requireGolden(t, file, string(text), told)
		})
	}
}

// requireGolden compares a golden file with the current text, or writes it.
func requireGolden(t *testing.T, file, text, now string) {
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(now), 0o644))
		return
	}
	require.Equal(t, text, now, "go test ./handlers -update writes it anew")
}

// tellStory plays a script and returns it with the outcome of each line.
func tellStory(t *testing.T, text string) string {
	script := scriptOf(text)
	p := newPlayer(t)
	var told strings.Builder
	var saved []player
	var came []string
	for _, line := range script {
		saved = append(saved, p.saved())
		came = append(came, p.play(line))
		told.WriteString(line + "\n" + came[len(came)-1])
	}
	p.requireReplay()
	for i, middle := range saved {
		require.Equal(t, came[i:], middle.playAll(script[i:]), "from a snapshot before %q", script[i])
		require.Equal(t, spelled(t, p.state), spelled(t, middle.state))
	}
	return told.String()
}

const indent = "    "

// scriptOf returns the lines of a story without their outcomes.
func scriptOf(text string) (script []string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, indent) {
			script = append(script, strings.TrimSuffix(line, "\n"))
		}
	}
	return script
}

// playAll plays the rest of a script from where the player is.
func (p *player) playAll(script []string) []string {
	p.state = restored(p.t, p.rules, spelled(p.t, p.state))
	var came []string
	for _, line := range script {
		came = append(came, p.play(line))
	}
	return came
}

// play plays one line and returns its outcome.
func (p *player) play(line string) string {
	p.out.Reset()
	word, rest, _ := strings.Cut(line, " ")
	if word == "" || strings.HasPrefix(word, "#") {
		return ""
	}
	do := command(word)
	require.NotNil(p.t, do, "there is no command %q", word)
	do(p, rest)
	var came strings.Builder
	for line := range strings.Lines(p.plain(p.out.String())) {
		came.WriteString(indent + line)
	}
	return came.String()
}

// spelled returns the snapshot of a State.
func spelled(t testing.TB, s *State) string {
	text, err := s.Snapshot().Text()
	require.NoError(t, err)
	return string(text)
}

func restored(t testing.TB, rules Rules, text string) *State {
	s, ok := Restore(rules, []byte(text), nil)
	require.True(t, ok, "%s", text)
	requireSameText(t, text, spelled(t, s))
	return s
}

// requireSameText compares texts that are too long to be shown completely.
func requireSameText(t testing.TB, expected, actual string) {
	at := 0
	for at < len(expected) && at < len(actual) && expected[at] == actual[at] {
		at++
	}
	if at < max(len(expected), len(actual)) {
		require.Failf(t, "not equal", "expected: …%.600s\nactual:   …%.600s", expected[max(0, at-300):], actual[max(0, at-300):])
	}
}

// requireReplay requires that the records so far give an equal State.
func (p *player) requireReplay() {
	require.Equal(p.t, spelled(p.t, p.state), spelled(p.t, p.replayed()))
}

func (p *player) replayed() *State {
	s := New(p.rules)
	require.NoError(p.t, s.Apply(backwards, p.records...))
	return s
}

// backwards is a spread that makes the last call first.
func backwards(n int, do func(from, to int)) {
	do(n/2, n)
	do(0, n/2)
}

// show writes an outcome.
func (p *player) show(out Outcome) {
	for _, r := range out.Records {
		to := ""
		if r.To != "" {
			to = " -> " + r.To
		}
		kind := strings.TrimSpace(r.Kind + " " + r.Topic)
		fmt.Fprintf(&p.out, "+ %d %s %s%s %s\n", r.Seq, kind, r.From, to, shortened(&r))
	}
	for i := range out.Letters {
		p.showLetter(&out.Letters[i])
	}
	switch {
	case out.Fault != nil:
		fmt.Fprintf(&p.out, "(fault: %v)\n", out.Fault)
	case out.Again:
		p.out.WriteString("(again)\n")
	case out.Waits:
		p.out.WriteString("(waits)\n")
	case out.Refused != nil && len(out.Letters) == 0:
		fmt.Fprintf(&p.out, "(ignored: %s)\n", out.Refused.Message)
	case len(out.Records)+len(out.Letters) == 0:
		p.out.WriteString("(nothing)\n")
	}
}

// showLetter writes a letter as on the wire, without its envelope.
func (p *player) showLetter(l *Letter) {
	to := l.To.Name
	switch {
	case l.To.Kind != Agent:
		to = l.To.String()
	case l.To.Run != p.run(l.To.Name):
		to += "@" + l.To.Run
	}
	var line []byte
	switch {
	case l.Line != nil || l.Kept != 0:
		fmt.Fprintf(&p.out, "%s <= %s\n", to, p.heardLine(l))
		return
	case l.Notice != "":
		line = stdio.Envelope{At: p.at}.AppendNotice(nil, l.Notice, l.Payload)
	case l.Pages != nil:
		for _, page := range l.Pages {
			fmt.Fprintf(&p.out, "(of records %v)\n", recordsOf(&page))
		}
		var err error
		l.Payload, err = state.Complete(l.Payload, l.Pages, shelf(p.records))
		if !errors.As(err, &l.Refusal) {
			require.NoError(p.t, err)
		}
		fallthrough
	default:
		line = stdio.Envelope{At: p.at}.AppendReply(nil, l.Form, l.Request, l.Payload, l.Refusal)
	}
	if l.Form == dialect.TaskRequest && l.Refusal != nil && !isReply(line) {
		fmt.Fprintf(&p.out, "%s <= %s\n", to, p.heardWork(line))
		return
	}
	p.showLine(to, line)
}

// showLine writes a line that an agent reads.
func (p *player) showLine(to string, line []byte) {
	var read struct {
		Type          string   `json:"type"`
		CorrelationID string   `json:"correlationId"`
		Payload       wire.Raw `json:"payload"`
		Error         wire.Raw `json:"error"`
	}
	require.NoError(p.t, object.DecodeOwn(line, &read), "%s", line)
	words := slices.DeleteFunc([]string{read.Type, read.CorrelationID, string(read.Payload), string(read.Error)},
		func(word string) bool { return word == "" })
	fmt.Fprintf(&p.out, "%s <- %s\n", to, strings.Join(words, " "))
}

// records returns the numbers of all records that a page names.
func recordsOf(p *history.Page) []int64 {
	all := append(slices.Clone(p.Parts), p.Notes...)
	if p.Response != 0 {
		all = append(all, p.Response)
	}
	if p.Ended != 0 {
		all = append(all, p.Ended)
	}
	for _, in := range p.Inputs {
		all = append(all, in.Ended)
	}
	for _, result := range p.Results {
		all = append(all, result.Ended)
	}
	return all
}

// showCounts writes the counts of everything.
func (p *player) showCounts(string) {
	counts, err := object.Encode(p.state.Counts())
	require.NoError(p.t, err)
	some := regexp.MustCompile(`"(\w+)":([1-9]\d*)`)
	for _, found := range some.FindAllStringSubmatch(string(counts), -1) {
		fmt.Fprintf(&p.out, "%s %s, ", found[2], found[1])
	}
	fmt.Fprintf(&p.out, "%d open, %d questions\n", p.state.Open(), p.state.QuestionCount())
}

// showHolds writes the tasks that an agent holds.
func (p *player) showHolds(who string) {
	holds, err := object.Encode(p.state.TasksOf(who))
	require.NoError(p.t, err)
	p.out.Write(append(holds, '\n'))
}

// showEvents writes all records as people see them.
func (p *player) showEvents(string) {
	for _, r := range p.records {
		e := state.Tell(r)
		about := e.Agent
		if e.Run != "" {
			about += " " + e.Run
		}
		if e.Task != "" {
			about += " " + e.Task
		}
		p.out.WriteString(strings.TrimRight(fmt.Sprintf("%d %s [%s] %s", e.Seq, e.Kind, strings.TrimSpace(about), e.Text), " ") + "\n")
	}
}

// withIDs replaces the names of tasks by their ids.
func (p *player) withIDs(text string) string {
	return regexp.MustCompile(`\$[\w-]+`).ReplaceAllStringFunc(text, func(name string) string {
		switch name {
		case "$schema": // a key of documents
			return name
		case "$TOKEN": // the latest registration token
			return p.token
		}
		if k := p.task(name[1:]); k != nil {
			return k.View.ID
		}
		return "no-" + name[1:]
	})
}

var (
	timeForm = regexp.MustCompile(`2026-11-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ`)
	markForm = regexp.MustCompile(`("request":\{"id":"[^"]*","run":"[^"]*"),"timestamp":"[^"]*","sum":\d+\}`)
)

// plain makes the outcome of a line readable: names of tasks instead of their ids, times since
// the beginning, and requests without sums.
func (p *player) plain(text string) string {
	for _, k := range append(p.archived(), p.state.Tasks.List...) {
		if k.Delegation() != nil {
			continue // its source gives it a readable id
		}
		text = strings.ReplaceAll(text, k.View.ID, "$"+k.View.Name)
		text = strings.ReplaceAll(text, state.Short(k.View.ID), "$"+k.View.Name)
	}
	text = markForm.ReplaceAllString(text, "$1}")
	return timeForm.ReplaceAllStringFunc(text, func(when string) string {
		at, _ := object.ParseTime(when)
		return "+" + at.Sub(beginning).Truncate(time.Millisecond).String()
	})
}
