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
// comments of the Go constants.
func codesPart(t *testing.T) string {
	rows := make(map[string][]string)
	for _, c := range wireCodes(t) {
		code, reason := heardCode(t, c.code)
		if reason != "" {
			c.meaning += " (with a reason)"
		}
		rows[code] = append(rows[code], c.meaning)
	}
	require.Len(t, rows, 6)
	var b strings.Builder
	b.WriteString("| Code | Meaning |\n|---|---|\n")
	for _, code := range schemaNamed(t, "response:error").at("properties", "error", "properties", "code").words("enum") {
		require.NotEmpty(t, rows[code], code)
		fmt.Fprintf(&b, "| `%s` | %s |\n", code, strings.Join(rows[code], "; or "))
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
	{"rate_limited", "more messages than `details.setting` allows, from one agent. Nothing was done. Wait for `details.retry_after_ms` and ask again, with a new id"},
	{"wrong_state", "the task is in a state in which this cannot be; `details.state` says which"},
	{"blocked", "the task waits for others; `details.waitsFor` has their ids"},
	{"unassigned", "no agent has the task, and an operator cannot work on it: agents take their own, or are given them"},
	{"too_many_questions", "a thousand of your questions wait for an answer; `details.open` says how many"},
	{"too_many_tasks", "as many tasks that you submitted are open as may be; `details.limit` says how many"},
	{"stored", "you have stored as many bytes as you may for now; `details.limit` says how many. You can read, and complete what you have; from twice as many on, with a result of at most 4 KiB"},
	{"removed", "the record of it was removed, as `store.keep` says; `details.base` is the last one that is gone"},
	{"disk_full", "the disk of the orchestrator has no room; `details.free` says how many bytes are left"},
	{"at_capacity", "you have as many tasks as you may have at a time; `details.taskIds` says which"},
	{"dependency_failed", "a task that this one was to depend on came to nothing, so it would never run"},
	{"too_old", "the task ended too long ago to be tried again: submit a new task"},
	{"contract_taken", "another task delivers under this contract already; `details.taskId` says which"},
	{"cycle", "tasks would wait for each other; `details.path` is the way round. Or a task that is handed on would come back to one of `details.delegationChain`"},
	{"agent_not_found", "a task is handed on to no agent; `details.target` says which"},
	{"capability_not_found", "no agent does what is handed on; `details.type` says what, or `details.capabilities` what the one that is named does"},
	{"chain_too_long", "as many have had in hand what is handed on as may; `details.most` says how many that is"},
	{"agent_unavailable", "the agent that a task is handed on to takes no messages, or does not run and will not by itself"},
	{"agent_busy", "too much waits for the agent that a task is handed on to; `details.waiting` says how many"},
	{"delegated", "the task was handed on by a task request, and is given to no other agent"},
	{"not_delegated", "the task did not come by a task request, and takes no input"},
	{"agent_down", "a person cannot start the task of an agent that does not run; its next run is told of it"},
	{"not_forwarded", "the task has not been brought to its agent yet"},
	{"takes_no_input", "the task is done by a server, and servers take no input"},
	{"other_run", "the task was given to another run of you, and that alone responds"},
	{"requirements", "the agent lacks what the task requires, and only a person may give it the task; `details.lacks` lists it"},
	{"no_requirements", "the task says nothing that agents could be matched by"},
	{"too_many_notes", "the task has ten thousand notes, and takes no more"},
	{"too_many_changes", "the task was changed ten thousand times, and takes no more changes"},
	{"too_many_credentials", "there are ten thousand keys and tokens; `details.credentials` has their number"},
	{"name_taken", "an agent of that name runs here"},
	{"no_actor", "an agent has messages only while it runs, or when its actor stands in the configuration"},
	{"actor_taken", "the actor is an agent here, which has a token from its start; `details.agent` says which"},
	{"in_session", "the task belongs to a session, where such things are said by messages; `details.session` says which"},
	{"ambiguous_session", "both are members of several sessions: say `session_id`"},
	{"session_closed", "nothing is said in that session any more; the message says why"},
	{"session_taken", "there is a session of that id"},
	{"task_id_taken", "there is a task of that id, and its review does not want changes; `details.state` says how it is"},
	{"review_id_taken", "there is a review of that id"},
	{"not_active", "the task or the review that is meant is not under way; `details.state` says how it is"},
	{"wrong_task", "the review is of another task; `details.task_id` says which"},
	{"iterations_used_up", "the task has had as many reviews as it may have"},
	{"scope_violation", "files were changed that are outside of `details.scope`; `details.files` says which"},
	{"too_large", "the request is longer than is read"},
	{"media_type", "the request says that it is no JSON"},
	{"id_reused", "this run of you has used the id for another request; or it is that of another task"},
	{"conflict", "it does not fit what is, for another reason: such as a stop that has begun"},
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

// reasonsOfTheCode returns all reasons in the code: those of codes, and those set in details.
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
