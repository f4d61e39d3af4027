package manual

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/laws/source"
	"orchestrator/wire"
	"orchestrator/wire/stdio"
)

// codesPart returns the table of the codes of refusals and their meanings. The meanings are the
// comments of the Go constants. A code with a reason is explained in the table of reasons.
func codesPart(t *testing.T) string {
	rows, reasoned := make(map[string][]string), make(map[string]bool)
	for _, c := range wireCodes(t) {
		code, reason := heardCode(t, c.code)
		if reason != "" {
			reasoned[code] = true
			continue
		}
		rows[code] = append(rows[code], c.meaning)
	}
	for code := range reasoned {
		rows[code] = append(rows[code], "the request is refused for a reason of the next table")
	}
	require.Len(t, rows, 6)
	var b strings.Builder
	b.WriteString("| Code | Meaning |\n|---|---|\n")
	for _, code := range schemaNamed(t, "response:error").at("properties", "error", "properties", "code").words("enum") {
		require.NotEmpty(t, rows[code], code)
		fmt.Fprintf(&b, "| `%s` | %s |\n", code, strings.Join(rows[code], ", or "))
	}
	return b.String()
}

type wireCode struct {
	code    wire.Code
	meaning string
}

// wireCodes returns the constants of type Code as declared in the source.
func wireCodes(t *testing.T) (found []wireCode) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../../../wire/object/error.go", nil, parser.ParseComments)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || fmt.Sprint(spec.Type) != "Code" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		found = append(found, wireCode{code: wire.Code(value), meaning: strings.TrimSpace(spec.Comment.Text())})
		return true
	})
	require.Greater(t, len(found), 6)
	return found
}

// heardCode returns the code and reason that agents see for a code.
func heardCode(t *testing.T, code wire.Code) (heard, reason string) {
	t.Helper()
	line := stdio.Envelope{ID: "x", At: time.Unix(0, 0)}.AppendRefusal(nil, nil, &wire.Error{Code: code})
	var said struct {
		Error struct {
			Code    string
			Details struct{ Reason string }
		}
	}
	require.NoError(t, json.Unmarshal(line, &said))
	return said.Error.Code, said.Error.Details.Reason
}

// reasons lists the values of details.reason in the order of the page. The test fails if this
// list and the code differ.
var reasons = []struct{ reason, meaning string }{
	{"rate_limited", "one agent sent more messages than `details.setting` allows. Nothing was done. Wait for `details.retry_after_ms`, then ask again with a new id"},
	{"wrong_state", "the state of the task, in `details.state`, does not allow this"},
	{"blocked", "the task waits for the tasks in `details.waitsFor`"},
	{"unassigned", "no agent has the task, and an operator cannot work on it: agents take their own tasks or get them assigned"},
	{"too_many_questions", "a thousand of your questions are open; `details.open` is their number"},
	{"too_many_tasks", "you have reached the limit of open submitted tasks, in `details.limit`"},
	{"stored", "you have reached the limit of stored bytes, in `details.limit`. You can still read, and complete your tasks; above twice the limit only with a result of at most 4 KiB"},
	{"removed", "its record was removed under `store.keep`; `details.base` is the last removed record"},
	{"disk_full", "the disk of the orchestrator is full; `details.free` is the number of free bytes"},
	{"at_capacity", "you have reached your limit of tasks; `details.taskIds` lists them"},
	{"dependency_failed", "a dependency of the new task has failed or was cancelled, so the task would never run"},
	{"too_old", "the task ended too long ago for a retry: submit a new task"},
	{"contract_taken", "another task, `details.taskId`, already delivers under this contract"},
	{"cycle", "tasks would wait for each other; `details.path` is the cycle. Or a delegated task would return to an agent in `details.delegationChain`"},
	{"agent_not_found", "the task is delegated to an unknown agent, `details.target`"},
	{"capability_not_found", "no agent does this type of work: `details.type`, or the named agent has only `details.capabilities`"},
	{"chain_too_long", "the task was delegated as often as allowed, `details.most` times"},
	{"agent_unavailable", "the target of the delegation takes no messages, or does not run and will not start by itself"},
	{"agent_busy", "too much work waits for the target of the delegation; `details.waiting` is its amount"},
	{"delegated", "the task was delegated by a task request, and cannot be assigned to another agent"},
	{"not_delegated", "the task did not come from a task request, and takes no input"},
	{"agent_down", "a person cannot start a task whose agent does not run; its next run is notified of the task"},
	{"not_forwarded", "the task has not reached its agent yet"},
	{"takes_no_input", "a server does the task, and servers take no input"},
	{"other_run", "another run of you has the task, and only that run responds"},
	{"requirements", "the agent does not meet the requirements of the task, and only a person may assign it; `details.lacks` lists the gaps"},
	{"no_requirements", "the task has no requirements for matching"},
	{"too_many_notes", "the task has ten thousand notes, the limit"},
	{"too_many_changes", "the task was changed ten thousand times, the limit"},
	{"too_many_credentials", "ten thousand keys and tokens exist, the limit; `details.credentials` is their number"},
	{"name_taken", "an agent of that name is running"},
	{"no_actor", "an agent has messages only while it runs, or if the configuration names its actor"},
	{"actor_taken", "the actor belongs to an agent, `details.agent`, which gets a token at its start"},
	{"in_session", "the task belongs to the session `details.session`: use its messages"},
	{"ambiguous_session", "sender and addressee share several sessions: add `session_id`"},
	{"session_closed", "the session is closed; the message has the reason"},
	{"session_taken", "a session with that id exists"},
	{"task_id_taken", "a task with that id exists, and its review does not ask for changes; `details.state` is its state"},
	{"review_id_taken", "a review with that id exists"},
	{"not_active", "the task or the review is not in progress; `details.state` is its state"},
	{"wrong_task", "the review belongs to another task, `details.task_id`"},
	{"iterations_used_up", "the task has reached its limit of reviews"},
	{"scope_violation", "`details.files` were changed, outside of `details.scope`"},
	{"too_large", "the request is too long"},
	{"media_type", "the media type of the request is not JSON"},
	{"id_reused", "this run has used the id for another request, or the id belongs to another task"},
	{"conflict", "any other conflict with the current state, for example a stop in progress"},
}

func reasonsPart(t *testing.T) string {
	var known []string
	var b strings.Builder
	b.WriteString("| Reason | Meaning |\n|---|---|\n")
	for _, r := range reasons {
		known = append(known, r.reason)
		fmt.Fprintf(&b, "| `%s` | %s |\n", r.reason, r.meaning)
	}
	require.ElementsMatch(t, reasonsOfTheCode(t), known, "the table of reasons in protocol_test.go")
	return b.String()
}

// reasonsOfTheCode returns all reasons in the code: the reasons of codes, and the ones set in
// details.
func reasonsOfTheCode(t *testing.T) (found []string) {
	t.Helper()
	add := func(reason string) {
		if reason != "" && !slices.Contains(found, reason) {
			found = append(found, reason)
		}
	}
	for _, c := range wireCodes(t) {
		_, reason := heardCode(t, c.code)
		add(reason)
	}
	files := slices.DeleteFunc(source.Files(t), func(f source.File) bool {
		return f.Test || !source.Matches([]string{"wire/...", "handlers/...", "supervisor", "supervisor/api", "supervisor/dispatch"}, f.Folder)
	})
	named := namedTexts(files)
	for _, f := range files {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			pair, ok := n.(*ast.KeyValueExpr)
			if ok && spelled(pair.Key) == "reason" {
				texts := spelledOut(pair.Value, named)
				require.NotEmpty(t, texts, "%s: a reason that is not spelled out", f.At(pair))
				for _, text := range texts {
					add(text)
				}
			}
			return true
		})
	}
	return found
}

// namedTexts returns the string constants and variables of files by name, including those in
// lists and tables.
func namedTexts(files []source.File) map[string][]string {
	named := make(map[string][]string)
	for _, f := range files {
		for _, declaration := range f.Syntax.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, one := range general.Specs {
				if spec, ok := one.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
					named[spec.Names[0].Name] = spelledOut(spec.Values[0], nil)
				}
			}
		}
	}
	return named
}

// spelledOut returns the possible string values of an expression.
func spelledOut(n ast.Expr, named map[string][]string) (texts []string) {
	switch n := n.(type) {
	case *ast.BasicLit:
		if text := spelled(n); text != "" {
			return []string{text}
		}
	case *ast.Ident:
		return named[n.Name]
	case *ast.SelectorExpr:
		return named[n.Sel.Name]
	case *ast.IndexExpr:
		return spelledOut(n.X, named)
	case *ast.KeyValueExpr:
		return spelledOut(n.Value, named)
	case *ast.CompositeLit:
		for _, item := range n.Elts {
			texts = append(texts, spelledOut(item, named)...)
		}
	}
	return texts
}

// spelled returns the value of a string literal, or "" for other expressions.
func spelled(n ast.Expr) string {
	literal, ok := n.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}
