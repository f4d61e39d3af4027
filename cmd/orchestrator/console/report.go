package console

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// reportForms maps the extensions of the file of up --report to its formats.
var reportForms = map[string]func(*report) ([]byte, error){
	".json": (*report).json, ".xml": (*report).junit, ".html": (*report).html,
}

// A report lists the tasks of one run of a team and their results.
type report struct {
	FormatVersion string         `json:"format_version"`
	Name          string         `json:"name"`
	StartedAt     string         `json:"started_at"`
	EndedAt       string         `json:"ended_at"`
	Seconds       float64        `json:"seconds"`
	Counts        map[string]int `json:"counts"` // number of tasks by outcome; not_done is for open ones, unmerged for done ones
	Tasks         []reported     `json:"tasks"`
}

// reported is a task of a report.
type reported struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Type      string  `json:"type"`
	State     string  `json:"state"`
	Agent     string  `json:"agent,omitzero"`
	CreatedAt string  `json:"created_at"`
	StartedAt string  `json:"started_at,omitzero"`
	EndedAt   string  `json:"ended_at,omitzero"`
	Seconds   float64 `json:"seconds"` // from start to end
	Attempts  int     `json:"attempts"`
	Unmerged  bool    `json:"unmerged,omitzero"` // it is done, and the queue has not merged its branch
	Why       string  `json:"why,omitzero"`      // why the task failed, was cancelled, is open or unmerged
}

// FitReport returns an error for a file that a report cannot be written to.
func FitReport(file string) error {
	if reportForms[formOf(file)] == nil {
		return cli.UsageError(fmt.Sprintf("--report does not support the file type of %s", term.Word(filepath.Base(file))), "Name it FILE.json, FILE.xml (JUnit) or FILE.html")
	}
	info, err := os.Stat(filepath.Dir(file))
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", filepath.Dir(file))
	}
	if err == nil {
		err = canReplace(file)
	}
	if err != nil {
		return cli.UsageError("--report cannot be written: "+err.Error(), "Name a file in a writable folder")
	}
	return nil
}

// formOf returns the extension of a file in lower case.
func formOf(file string) string { return strings.ToLower(filepath.Ext(file)) }

// canReplace returns why a file cannot be replaced: it is not a regular file, or its folder
// is not writable.
func canReplace(file string) error {
	if _, err := os.Lstat(file); err == nil {
		info, err := os.Stat(file)
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a file", file)
		}
		if err != nil {
			return err
		}
	}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	probe, err := os.CreateTemp(filepath.Dir(file), ".orchestrator-new-*")
	if err != nil {
		return err
	}
	_ = probe.Close()
	return os.Remove(probe.Name())
}

// WriteReport writes the report on the tasks of a team since began. It replaces the file
// atomically.
func WriteReport(file, team string, began time.Time, tasks []wire.Task) error {
	text, err := reportForms[formOf(file)](newReport(team, began, time.Now(), tasks))
	if err == nil {
		err = cli.ReplaceFile(file, text)
	}
	if err != nil {
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "the report was not written: " + err.Error(),
			Hint: "The results of the tasks: orchestrator task ls", Details: map[string]any{"path": file},
		}
	}
	return nil
}

func newReport(name string, began, ended time.Time, tasks []wire.Task) *report {
	r := &report{
		FormatVersion: wire.FormatVersion, Name: name, StartedAt: object.Timestamp(began), EndedAt: object.Timestamp(ended),
		Seconds: seconds(ended.Sub(began)), Counts: make(map[string]int), Tasks: make([]reported, 0, len(tasks)),
	}
	for i := range tasks {
		t := &tasks[i]
		x := reported{
			ID: t.ID, Name: t.Name, Type: t.Type, State: string(t.State), Agent: t.AssignedTo, CreatedAt: t.CreatedAt,
			StartedAt: t.StartedAt, EndedAt: t.EndedAt, Attempts: t.Attempts,
		}
		switch t.State {
		case wire.TaskFailed:
			x.Why = t.Error
		case wire.TaskCancelled:
			x.Why = t.Reason
		case wire.TaskDone:
			if x.Unmerged = t.Details != nil && t.Workspace.Holds(); x.Unmerged {
				x.Why = "its branch is not merged: orchestrator why " + wire.ShortID(t.ID)
			}
		default:
			x.Why = openWords(t)
		}
		from, began := object.ParseTime(t.StartedAt)
		until, over := object.ParseTime(t.EndedAt)
		if !over {
			until = ended
		}
		if began {
			x.Seconds = seconds(until.Sub(from))
		}
		r.Counts[x.outcome()]++
		r.Tasks = append(r.Tasks, x)
	}
	return r
}

// seconds returns a duration in seconds, rounded down to milliseconds.
func seconds(d time.Duration) float64 { return float64(max(d, 0).Milliseconds()) / 1000 }

// outcome returns done, unmerged, failed, cancelled or not_done.
func (r *reported) outcome() string {
	if r.Unmerged {
		return "unmerged"
	}
	if state := wire.TaskState(r.State); state.Final() {
		return r.State
	}
	return "not_done"
}

func (r *report) json() ([]byte, error) {
	text, err := object.Encode(r)
	return append(text, '\n'), err
}

// junitSuite is the XML element for CI systems. A failed task is a failure, as is a task with an
// unmerged branch; an open one is an error, and a cancelled one is skipped.
type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	At       string      `xml:"timestamp,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string      `xml:"name,attr"`
	Class   string      `xml:"classname,attr"`
	Time    string      `xml:"time,attr"`
	Failure *junitWords `xml:"failure"`
	Error   *junitWords `xml:"error"`
	Skipped *junitWords `xml:"skipped"`
}

type junitWords struct {
	Message string `xml:"message,attr"`
}

func (r *report) junit() ([]byte, error) {
	suite := junitSuite{
		Name: term.OneLine(r.Name), Tests: len(r.Tasks), Failures: r.Counts["failed"] + r.Counts["unmerged"], Errors: r.Counts["not_done"], Skipped: r.Counts["cancelled"],
		Time: decimal(r.Seconds), At: r.StartedAt,
	}
	for i := range r.Tasks {
		x := &r.Tasks[i]
		words := &junitWords{Message: cli.VisibleLines(x.Why)}
		c := junitCase{
			Name: term.OneLine(x.Name) + " (" + term.ID(x.ID) + ")", Class: suite.Name + "." + term.OneLine(x.Type), Time: decimal(x.Seconds),
		}
		switch x.outcome() {
		case "failed", "unmerged":
			c.Failure = words
		case "cancelled":
			c.Skipped = words
		case "not_done":
			c.Error = words
		}
		suite.Cases = append(suite.Cases, c)
	}
	text, err := xml.MarshalIndent(&suite, "", "  ")
	return slices.Concat([]byte(xml.Header), text, []byte("\n")), err
}

func decimal(seconds float64) string { return strconv.FormatFloat(seconds, 'f', 3, 64) }

// reportPage is the template of the HTML report. The page loads no other files.
const reportPage = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{line .Name}}: {{len .Tasks}} tasks</title>
<style>
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #8884; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
code { opacity: .7; }
.done { color: #2a8a4a; } .failed, .unmerged, .not_done { color: #d0382b; } .cancelled { opacity: .7; }
.why { white-space: pre-wrap; overflow-wrap: anywhere; }
</style>
</head>
<body>
<h1>{{line .Name}}</h1>
<p>{{len .Tasks}} tasks in {{took .Seconds}}, from {{.StartedAt}} to {{.EndedAt}}:
{{count . "done"}} done, {{count . "failed"}} failed, {{count . "cancelled"}} cancelled, {{count . "not_done"}} not done{{with count . "unmerged"}}, {{.}} not merged{{end}}.</p>
{{if .Tasks}}<table>
<tr><th>Task<th>State<th>Agent<th>At work<th>Why</tr>
{{range .Tasks}}<tr><td>{{line .Name}} <code>{{id .ID}}</code><td class="{{.Outcome}}">{{words .State}}<td>{{line .Agent}}<td class="n">{{took .Seconds}}<td class="why">{{text .Why}}</tr>
{{end}}</table>{{end}}
</body>
</html>
`

// Outcome is outcome, for the template.
func (r reported) Outcome() string { return r.outcome() }

func (r *report) html() ([]byte, error) {
	words := template.FuncMap{
		"line": term.OneLine, "text": cli.VisibleLines, "id": term.ID,
		"took":  func(s float64) string { return term.Duration(time.Duration(s * float64(time.Second))) },
		"count": func(r *report, what string) int { return r.Counts[what] },
		"words": func(outcome string) string { return strings.ReplaceAll(outcome, "_", " ") },
	}
	form, err := template.New("report").Funcs(words).Parse(reportPage)
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	err = form.Execute(&page, r)
	return page.Bytes(), err
}
