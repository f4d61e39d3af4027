package session

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// readSaid decodes an entry of the log. A rejected message may have any content, so its
// invalid parts are ignored.
func readSaid(raw wire.Raw) (said, error) {
	e, err := client.Decode[session.Entry](raw)
	if err != nil {
		return said{}, err
	}
	members := bodyOf[map[string]wire.Raw](raw)
	s := said{
		id: e.MessageID, kind: term.Clip(term.OneLine(e.Type), widestWord), from: term.Clip(term.OneLine(e.From), widestWord), to: bodyOf[speakerSaid](members["to_agent"]).AgentID,
		chain: e.Chain, replyTo: bodyOf[string](members["reply_to"]), at: e.LoggedAt, refused: e.Refused, complaint: e.Errors, by: term.OneLine(e.By),
		payload: members["payload"],
	}
	s.task, s.lines = sessionWords(s.kind, s.payload)
	return s, nil
}

// widestWord is the maximum width of a name or a type. Names in a rejected message may be of any
// length.
const widestWord = 64

type speakerSaid struct {
	AgentID string `json:"agent_id"`
}

// bodyOf decodes the shown part of a payload. It ignores errors, because rejected messages
// may have any content. Its types name only members that are shown, and not the documents of
// package session: decoding ends at the first wrong member, which must not hide other members.
func bodyOf[T any](payload wire.Raw) (body T) {
	if len(payload) > 0 {
		_ = object.DecodeOwn(payload, &body)
	}
	return body
}

// sessionWords returns the task of a message and a summary of its payload.
func sessionWords(kind string, payload wire.Raw) (task string, lines []string) {
	var words []string
	switch kind {
	case session.TypeTaskAssignment:
		b := bodyOf[assignmentSaid](payload)
		return b.Task.ID, []string{spaced(b.Priority, b.Task.Description, prefixed("until ", b.Deadline), prefixed("after ", b.after()))}
	case session.TypeTaskProgress:
		b := bodyOf[progressSaid](payload)
		words = []string{strconv.FormatFloat(b.Percent, 'f', -1, 64) + "%", b.Step, prefixed("left: ", b.Remaining), prefixed("blocked: ", strings.Join(b.Blockers, "; "))}
		return b.TaskID, []string{spaced(words...)}
	case session.TypeTaskCompletion:
		b := bodyOf[completionSaid](payload)
		return b.TaskID, []string{spaced(b.Status, b.files(), b.tests(), b.Summary, prefixed("blocked: ", strings.Join(b.Blockers, "; ")))}
	case session.TypeReviewRequest:
		b := bodyOf[requestSaid](payload)
		return b.TaskID, []string{spaced(b.ReviewID, fewFiles(b.Scope.Files), prefixed("look at ", strings.Join(b.Scope.FocusAreas, ", ")))}
	case session.TypeReviewResult:
		b := bodyOf[resultSaid](payload)
		return b.TaskID, append([]string{spaced(b.Verdict, b.counts(), b.Summary)}, b.first()...)
	case session.TypeFeedback:
		b := bodyOf[feedbackSaid](payload)
		if b.ActionRequired {
			b.Type += ", action required"
		}
		return b.TaskID, []string{spaced(b.Type, b.Subject)}
	case session.TypeAbort:
		b := bodyOf[abortSaid](payload)
		task := ""
		if b.Scope == session.AbortTask {
			task = b.TargetID
		}
		if b.Cleanup {
			b.Reason = spaced(b.Reason, "(to be cleaned up)")
		}
		return task, []string{spaced(b.Scope+" "+b.TargetID, b.Reason)}
	}
	b := bodyOf[aboutSaid](payload)
	if text := strings.TrimSpace(string(payload)); text != "" && text != "{}" {
		lines = []string{term.OneLine(text)}
	}
	return b.TaskID, lines
}

// spaced joins the words that are not empty, each safe for a terminal.
func spaced(words ...string) string {
	var shown []string
	for _, word := range words {
		if word = term.OneLine(word); word != "" {
			shown = append(shown, word)
		}
	}
	return strings.Join(shown, "  ")
}

func prefixed(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// aboutSaid is the part that all payloads share.
type aboutSaid struct {
	TaskID string `json:"task_id"`
}

type assignmentSaid struct {
	Task struct {
		ID          string `json:"task_id"`
		Description string `json:"task_description"`
	} `json:"task"`
	Priority     string `json:"priority"`
	Deadline     string `json:"deadline"`
	Dependencies []struct {
		TaskID    string   `json:"task_id"`
		DependsOn []string `json:"depends_on"`
		Type      string   `json:"dependency_type"`
	} `json:"dependencies"`
}

// after returns the tasks that an assignment waits for.
func (a *assignmentSaid) after() string {
	var ids []string
	for _, d := range a.Dependencies {
		if d.Type == session.DependsHard && (d.TaskID == "" || d.TaskID == a.Task.ID) {
			ids = append(ids, d.DependsOn...)
		}
	}
	return strings.Join(ids, ", ")
}

type progressSaid struct {
	TaskID    string   `json:"task_id"`
	Percent   float64  `json:"progress_percent"`
	Step      string   `json:"current_step"`
	Remaining string   `json:"estimated_remaining"`
	Blockers  []string `json:"blockers"`
}

type completionSaid struct {
	TaskID  string `json:"task_id"`
	Status  string `json:"status"`
	Summary string `json:"summary"`
	Changes struct {
		Created  []fileSaid `json:"files_created"`
		Modified []fileSaid `json:"files_modified"`
		Deleted  []string   `json:"files_deleted"`
	} `json:"changes"`
	Review struct {
		Run    bool `json:"tests_run"`
		Passed bool `json:"tests_passed"`
	} `json:"self_review"`
	Blockers []string `json:"blockers"`
}

type fileSaid struct {
	Path string `json:"path"`
}

func (c *completionSaid) files() string {
	var paths []string
	for _, f := range c.Changes.Created {
		paths = append(paths, "+"+f.Path)
	}
	for _, f := range c.Changes.Modified {
		paths = append(paths, f.Path)
	}
	for _, path := range c.Changes.Deleted {
		paths = append(paths, "-"+path)
	}
	return fewFiles(paths)
}

func (c *completionSaid) tests() string {
	switch {
	case c.Status != session.OutcomeCompleted:
		return ""
	case !c.Review.Run:
		return "tests not run"
	case !c.Review.Passed:
		return "tests failed"
	}
	return "tests passed"
}

// fewFiles returns the number of files and the first few names.
func fewFiles(paths []string) string {
	const few = 3
	if len(paths) == 0 {
		return "no files"
	}
	said := term.Count(len(paths), "file") + ": " + strings.Join(paths[:min(few, len(paths))], ", ")
	if len(paths) > few {
		said += ", …"
	}
	return said
}

type requestSaid struct {
	ReviewID string `json:"review_id"`
	TaskID   string `json:"task_id"`
	Scope    struct {
		Files      []string `json:"files"`
		FocusAreas []string `json:"focus_areas"`
	} `json:"scope"`
}

type resultSaid struct {
	ReviewID string        `json:"review_id"`
	TaskID   string        `json:"task_id"`
	Verdict  string        `json:"verdict"`
	Summary  string        `json:"summary"`
	Findings []findingSaid `json:"findings"`
}

type findingSaid struct {
	ID       string `json:"finding_id"`
	Severity string `json:"severity"`
	Category string `json:"category"`
	Location struct {
		File string `json:"file"`
		Line int64  `json:"line_start"`
	} `json:"location"`
	Text  string `json:"description"`
	Fixed int64  `json:"fixed_in_iteration"`
}

// severities lists the severities, the worst first.
var severities = []string{session.SeverityCritical, session.SeverityMajor, session.SeverityMinor, session.SeveritySuggestion}

// counts returns the number of open findings by severity, and of fixed ones.
func (r *resultSaid) counts() string {
	number := make(map[string]int)
	fixed := 0
	for i := range r.Findings {
		if r.Findings[i].Fixed > 0 {
			fixed++
		} else {
			number[r.Findings[i].Severity]++
		}
	}
	var said []string
	for _, severity := range severities {
		if n := number[severity]; n > 0 {
			said = append(said, fmt.Sprintf("%d %s", n, severity))
		}
	}
	if fixed > 0 {
		said = append(said, fmt.Sprintf("%d fixed", fixed))
	}
	return cmp.Or(strings.Join(said, ", "), "no findings")
}

// first returns the worst open findings, a line each.
func (r *resultSaid) first() (lines []string) {
	const few = 3
	open := 0
	for _, severity := range severities {
		for i := range r.Findings {
			f := &r.Findings[i]
			if f.Fixed > 0 || f.Severity != severity {
				continue
			}
			if open++; open <= few {
				lines = append(lines, spaced(f.Severity, f.Category, f.ID, f.place(), f.Text))
			}
		}
	}
	if open > few {
		lines = append(lines, fmt.Sprintf("and %d more", open-few))
	}
	return lines
}

func (f *findingSaid) place() string {
	if f.Location.Line > 0 {
		return fmt.Sprintf("%s:%d", f.Location.File, f.Location.Line)
	}
	return f.Location.File
}

type feedbackSaid struct {
	Type           string `json:"feedback_type"`
	Subject        string `json:"subject"`
	ActionRequired bool   `json:"action_required"`
	TaskID         string `json:"related_task_id"`
}

type abortSaid struct {
	Scope    string `json:"scope"`
	TargetID string `json:"target_id"`
	Reason   string `json:"reason"`
	Cleanup  bool   `json:"cleanup_required"`
}
