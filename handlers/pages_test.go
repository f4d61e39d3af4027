package handlers

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// TestWholeFromTheLog plays the same lines with two players. One has texts so long that nearly
// everything is only in the log. It keeps few finished tasks whole, and is restored or replayed
// now and then. Both must give the same answers, repeated requests included.
//
// Rows, B-30, T-23, T-48.
func TestWholeFromTheLog(t *testing.T) {
	saw := make(map[string]int)
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newTwins(t, seed)
			for range 120 {
				w.play(w.line())
				switch w.chance.IntN(20) {
				case 0:
					w.long.state = restored(t, w.long.rules, spelled(t, w.long.state))
				case 1:
					w.long.state = w.long.replayed()
				}
			}
			w.long.requireReplay()
			for what, times := range w.saw {
				saw[what] += times
			}
		})
	}
	for _, what := range []string{
		"from the log", "a repeat from the log", "a help that was answered", "inputs", events.TaskUpdated, events.TaskPlanned,
		events.TaskPlanReturned, events.TaskArchived, events.TaskRecalled, events.TaskHelpWanted, events.TaskFailed, events.TaskCancelled, events.TaskNoted,
	} {
		require.Positive(t, saw[what], what)
	}
}

// twins holds two players with the same inputs, one of them with short texts.
type twins struct {
	t           *testing.T
	chance      *rand.Rand
	short, long *player
	tasks, ids  int
	saw         map[string]int
}

// filler marks where the lines of the long player have a long text.
const filler = "FILLER"

var lengthy = strings.Repeat("é<&>\U0001f600 ", state.Heavy/12)

func newTwins(t *testing.T, seed uint64) *twins {
	w := &twins{t: t, chance: rand.New(rand.NewPCG(seed, 7)), short: newPlayer(t), long: newPlayer(t), saw: make(map[string]int)}
	w.short.play("rules: keep=1000")
	w.long.play("rules: keep=1 archive=true")
	for _, line := range []string{
		"agents: planner(planner) coder(worker; ; 3) other(worker; ; 2; requeue)", "up", "start planner", "start coder", "start other",
	} {
		w.play(line)
	}
	return w
}

// play plays a line to both players, and compares the answers.
func (t *twins) play(line string) {
	said := t.short.play(line)
	told := t.long.play(strings.ReplaceAll(line, filler, lengthy))
	require.NoError(t.t, t.long.last.Fault)
	require.Equal(t.t, plainly(said), plainly(told), "after %s", line)
	t.saw["from the log"] += strings.Count(told, "(of records ")
	for _, r := range t.long.last.Records {
		t.saw[r.Kind]++
	}
	if strings.HasPrefix(line, "resend") && strings.Contains(told, "(of records ") {
		t.saw["a repeat from the log"]++
	}
	t.saw["a help that was answered"] += strings.Count(said, `"answeredAt":`)
	t.saw["inputs"] += strings.Count(said, `"resolved_inputs":`)
}

// plainly returns the answers without the mark of their completion. Lists leave out long errors.
func plainly(told string) string {
	var kept strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(told, lengthy, filler)) {
		if strings.Contains(line, `{"tasks":[`) {
			line = errorForm.ReplaceAllString(line, "")
		}
		if !strings.HasPrefix(line, indent+"(of records ") && !archiving.MatchString(line) {
			kept.WriteString(noteID.ReplaceAllString(factNumber.ReplaceAllString(line, indent+"+ "), `"id":"n"`))
		}
	}
	return kept.String()
}

// archiving matches facts that only one of the players has, and factNumber the numbers of the other
// facts. The id of a note is such a number.
var (
	archiving  = regexp.MustCompile(`^ +\+ \d+ task\.(archived|recalled) `)
	noteID     = regexp.MustCompile(`"id":"n\d+"`)
	factNumber = regexp.MustCompile(`^ +\+ \d+ `)
)

var errorForm = regexp.MustCompile(`,"error":"[^"]*"`)

func (t *twins) pick(of ...string) string { return of[t.chance.IntN(len(of))] }

func (t *twins) task() string { return fmt.Sprintf("$n%d", t.chance.IntN(max(1, t.tasks))) }

// line returns a random line.
func (t *twins) line() string {
	t.ids++
	who := t.pick("planner", "planner", "operator", "coder", "other")
	switch n := t.chance.IntN(24); {
	case n < 3:
		return t.submit()
	case n < 6:
		return t.ask(who, "update-task", t.some(
			`"name":"n%d `+filler+`"`, `"description":"d%d `+filler+`"`, `"payload":{"n":%d,"p":"`+filler+`"}`, `"type":"t%d"`, `"priority":%d`,
			`"structured_spec":`+specWith(filler), `"structured_spec":null`, `"requirements":{"languages":["x%d `+filler+`"]}`,
			`"requirements":null`, `"acceptanceCriteria":["a%d"]`, `"targetRepo":"r%d"`,
		))
	case n < 8:
		return t.ask("operator", "assign-task", fmt.Sprintf(`"agent":%q,"requirePlan":%t`, t.pick("coder", "other"), t.chance.IntN(3) > 0))
	case n < 12:
		return t.plan()
	case n < 13:
		return t.ask(t.pick("coder", "other"), "start-task")
	case n < 16:
		return t.help()
	case n < 18:
		return t.finish()
	case n < 19:
		return t.ask(who, "add-note", fmt.Sprintf(`"content":"c%d `, t.ids)+filler+`"`)
	case n < 21:
		return t.read(who)
	case n < 22 && len(t.short.sent) > 0:
		return t.repeat()
	}
	return fmt.Sprintf(`> %s event:progress {"taskId":"%s","progress":0.5}`, t.pick("coder", "other"), t.task())
}

// ask returns a request about some task.
func (t *twins) ask(who, operation string, members ...string) string {
	task := t.task()
	if k := t.short.task(task[1:]); k != nil && k.View.AssignedTo != "" && t.chance.IntN(4) > 0 && (who == "coder" || who == "other") {
		who = k.View.AssignedTo
	}
	members = append([]string{fmt.Sprintf(`"taskId":"%s"`, task)}, members...)
	return fmt.Sprintf("> %s r%d %s {%s}", who, t.ids, operation, strings.Join(members, ","))
}

// some returns a few of the possible members.
func (t *twins) some(of ...string) string {
	t.chance.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	var members []string
	known := make(map[string]bool)
	for _, m := range of[:1+t.chance.IntN(3)] {
		if name, _, _ := strings.Cut(m, ":"); !known[name] {
			known[name] = true
			members = append(members, strings.ReplaceAll(m, "%d", fmt.Sprint(t.ids)))
		}
	}
	return strings.Join(members, ",")
}

// specWith returns a spec that promises two contracts.
func specWith(text string) string {
	return `{"$schema":"orchestratia/task-spec/v1","requirements":[{"description":"` + text + `","priority":"must"}],
		"output_expectations":{"contracts":{"k1":{"description":"d","required":true},"k2":{"description":"d"}}}}`
}

func (t *twins) submit() string {
	line := fmt.Sprintf(`> planner r%d submit-task {"type":"t","name":"n%d",`, t.ids, t.tasks) +
		t.some(`"description":"d`+filler+`"`, `"payload":{"p":"`+filler+`"}`, `"structured_spec":`+specWith(filler), `"requiredRole":"worker"`)
	if t.tasks > 0 && t.chance.IntN(2) == 0 {
		line += fmt.Sprintf(`,"dependencies":[{"depends_on_task_id":"%s","dependency_type":"input","contract_key":"k%d"}]`, t.task(), 1+t.chance.IntN(2))
	}
	t.tasks++
	return line + "}"
}

func (t *twins) plan() string {
	switch t.chance.IntN(4) {
	case 0:
		return t.ask("planner", "revise-plan", fmt.Sprintf(`"feedback":"f%d"`, t.ids))
	case 1:
		return t.ask("planner", "approve-plan")
	case 2:
		return t.ask(t.pick("coder", "other"), "submit-plan", fmt.Sprintf(`"plan":{"n":%d,"p":"`, t.ids)+filler+`"}`)
	}
	return t.ask(t.pick("coder", "other"), "submit-plan", fmt.Sprintf(`"plan":"p%d`, t.ids)+filler+`"`)
}

func (t *twins) help() string {
	if len(t.short.state.Questions.Open) > 0 && t.chance.IntN(2) == 0 {
		return fmt.Sprintf(`> operator r%d answer-question {"questionId":%q,"answer":"a%d"}`, t.ids, t.short.state.Questions.Open[0].View.ID, t.ids)
	}
	return t.ask(t.pick("coder", "other"), "request-help", fmt.Sprintf(`"question":"q%d","context":{"c":"`, t.ids)+filler+`"}`)
}

func (t *twins) finish() string {
	who := t.pick("coder", "other", "operator")
	switch t.chance.IntN(8) {
	case 0:
		return t.ask(who, "fail-task", fmt.Sprintf(`"error":"e%d`, t.ids)+filler+`"`)
	case 1:
		return t.ask("planner", "cancel-task", fmt.Sprintf(`"reason":"r%d"`, t.ids))
	case 2:
		return t.ask(who, "complete-task", `"result":"`+filler+`"`)
	}
	result := fmt.Sprintf(`"result":{"$schema":"orchestratia/task-result/v1","summary":"s%d `, t.ids) + t.pick(filler, "") + `","contracts":{`
	result += t.pick(`"k1":{"status":"fulfilled","data":{"d":"`+filler+`","n":12345678901234567890}}`, `"k1":{"status":"partial","data":[1]}`) +
		t.pick(``, `,"k2":{"status":"fulfilled"}`, `,"k2":{"status":"skipped","data":{"reason":"none"}}`) + `}}`
	return t.ask(who, "complete-task", result)
}

func (t *twins) read(who string) string {
	switch t.chance.IntN(4) {
	case 0:
		return fmt.Sprintf("> %s r%d poll-tasks {}", t.pick("coder", "other"), t.ids)
	case 1:
		return t.ask(who, "list-notes")
	case 2:
		return fmt.Sprintf(`> operator r%d query-tasks {}`, t.ids)
	}
	return t.ask("operator", "get-task")
}

// repeat sends a granted request again.
func (t *twins) repeat() string {
	id := 1 + t.chance.IntN(t.ids)
	for ; id <= t.ids; id++ {
		for _, who := range []string{"planner", "coder", "other"} {
			if t.short.sent[fmt.Sprintf("%s r%d", who, id)] != nil {
				return fmt.Sprintf("resend %s r%d", who, id)
			}
		}
	}
	return t.ask("operator", "get-task")
}

// shelf is a log in memory: record n at n-1.
type shelf []wire.Record

func (s shelf) Record(seq int64) (wire.Record, error) { return s[seq-1], nil }

func (s shelf) Find(search wire.Search) iter.Seq2[wire.Record, error] {
	return func(yield func(wire.Record, error) bool) {
		if search.Archived {
			s.archived(&search, yield)
			return
		}
		for _, r := range s {
			if found(&search, &r) && !yield(r, nil) {
				return
			}
		}
	}
}

// archived yields the newest record of each archived task, in the order of their creation.
func (s shelf) archived(search *wire.Search, yield func(wire.Record, error) bool) {
	newest := make(map[int64]wire.Record)
	for _, r := range s {
		if found(search, &r) {
			newest[r.ReplyTo] = r
		}
	}
	for _, created := range slices.Sorted(maps.Keys(newest)) {
		if !yield(newest[created], nil) {
			return
		}
	}
}

// handle lets the State decide about an input, with the archived tasks that it needs.
func (s shelf) handle(st *State, in *Input) Outcome {
	for {
		out := st.Handle(*in)
		if !out.Again || len(out.Missing) == 0 {
			return out
		}
		for _, id := range out.Missing {
			if in.Absent == nil {
				in.Absent = make(map[string]bool)
			}
			in.Absent[id] = true
			for r := range s.Find(wire.Search{Archived: true, Task: id}) {
				in.Archived = append(in.Archived, r)
			}
		}
	}
}

func (s shelf) After(seq int64) iter.Seq2[wire.Record, error] {
	return func(yield func(wire.Record, error) bool) {
		for i := range s {
			if s[i].Seq > seq && !yield(s[i], nil) {
				return
			}
		}
	}
}

// found reports whether a record matches a search, by key, by task or by recipient.
func found(s *wire.Search, r *wire.Record) bool {
	if s.Archived {
		return r.Kind == events.TaskArchived && (s.Task == r.Correlation || s.Task == "" && r.ReplyTo > s.After) && (s.Until == 0 || r.Seq <= s.Until)
	}
	if s.Key != "" {
		return r.From == s.From && r.Key == s.Key
	}
	return r.Topic != "" && (s.To == nil || slices.Contains(s.To, r.To)) && r.Seq > s.After && (s.Until == 0 || r.Seq <= s.Until)
}

// lookUp does the lookup in the log that precedes a decision about a message.
func (s shelf) lookUp(st *State, in *Input) {
	l, from, key := st.IdempotencyKey(in)
	if l == nil {
		return
	}
	*l = wire.Lookup{Looked: int64(len(s)), Sender: from}
	for r := range s.Find(wire.Search{From: from, Key: key}) {
		l.Before, l.Sum = r.Seq, state.SumOf(&r)
	}
}

// read is an archive that a test observes.
type read func(seq int64) (wire.Record, error)

func (r read) Record(seq int64) (wire.Record, error) { return r(seq) }

func (r read) Find(wire.Search) iter.Seq2[wire.Record, error] { panic("nothing is to be searched") }
func (r read) After(int64) iter.Seq2[wire.Record, error]      { panic("nothing is to be searched") }
