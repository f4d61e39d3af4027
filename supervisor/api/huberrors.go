package api

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// codeMethod is the code for an existing path without the requested method. Only the hub and
// the bus distinguish it.
const codeMethod wire.Code = "method"

// hubRefusal is an error document of the hub and the bus. Older clients read only detail.
type hubRefusal struct {
	Error hubError `json:"error"`
	// The message again, for older programs.
	Detail string `json:"detail" schema:"minlen=1"`
}

type hubError struct {
	// The kind of refusal, for programs.
	Code wire.Code `json:"code" schema:"enum=api.codes"`
	// What was wrong, for people.
	Message string `json:"message" schema:"minlen=1"`
	// Details, which depend on the error.
	Details map[string]any `json:"details"`
	// Whether the same request may succeed later.
	Recoverable bool `json:"recoverable"`
	// A suggestion for the next step.
	Hint string `json:"hint,omitzero"`
}

func toHub(e *wire.Error) *hubRefusal {
	return &hubRefusal{Detail: e.Message, Error: hubError{
		Code: e.Code, Message: e.Message, Details: hubDetails(e.Details), Hint: hubHints.Replace(e.Hint), Recoverable: recoverable(e),
	}}
}

// hubHints replaces operations in hints by routes of the hub.
var hubHints = strings.NewReplacer(
	"with start-task", "with POST /api/v1/servers/tasks/{id}/start",
	"with fail-task", "with POST /api/v1/servers/tasks/{id}/fail",
	"with cancel-task", "with DELETE /api/v1/server/tasks/{id}",
	"with get-task", "with GET /api/v1/server/tasks/{id}",
)

// hubDetails converts the keys and states in details to those of the hub.
func hubDetails(details map[string]any) map[string]any {
	if details == nil {
		return nil
	}
	spelled := make(map[string]any, len(details))
	for key, value := range details {
		spelled[snakeCase(key)] = value
	}
	if state, ok := details["state"].(string); ok && details["status"] != nil {
		spelled["status"] = wire.TaskState(state).Hub()
	}
	return spelled
}

// snakeCase converts a key such as taskId to task_id.
func snakeCase(key string) string {
	var spelled []byte
	for i := range len(key) {
		c := key[i]
		if 'A' <= c && c <= 'Z' {
			spelled = append(spelled, '_')
			c |= 0x20
		}
		spelled = append(spelled, c)
	}
	return string(spelled)
}

func recoverable(e *wire.Error) bool {
	switch e.Code {
	case wire.CodeLimited, wire.CodeTimeout, wire.CodeInternal:
		return true
	case wire.CodeConflict:
		return e.Details["reason"] == "blocked"
	}
	return false
}

// hubStatus returns the HTTP status of a code. It distinguishes malformed JSON from an invalid
// document.
func hubStatus(code wire.Code) int {
	if code == wire.CodeInvalid {
		return http.StatusUnprocessableEntity
	}
	return status(code)
}

// unreadable returns the error for an unreadable body: the reader's own, or a general one if
// the body is not JSON.
func unreadable(text []byte, depth int, why *wire.Error) *wire.Error {
	if utf8.Valid(text) && (json.Valid(text) || deeper(text, depth)) {
		return why
	}
	return &wire.Error{Code: wire.CodeMalformed, Message: "the request is no JSON", Details: map[string]any{"pointer": ""}}
}

// deeper reports whether a text nests deeper than depth. It stops there, so that a text of
// brackets costs little.
func deeper(text []byte, depth int) bool {
	level, quoted := 0, false
	for i := 0; i < len(text) && level <= depth; i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
		case c == '}' || c == ']':
			level--
		}
	}
	return level > depth
}

// aimed changes the pointer of a refusal from the operation's names to those of the route.
func (a *params) aimed(err error) error {
	refusal, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return err
	}
	pointer, ok := refusal.Details["pointer"].(string)
	if !ok {
		return err
	}
	theirs := *refusal
	theirs.Details = maps.Clone(refusal.Details)
	theirs.Details["pointer"] = a.pointer(pointer)
	return &theirs
}

// hubPointers maps pointers of operations to different names in the hub.
var hubPointers = map[string]string{
	"/dependsOnTaskId": "/depends_on_task_id",
	"/contractKey":     "/contract_key",
}

func (a *params) pointer(theirs string) string {
	theirs = strings.TrimPrefix(theirs, "/payload")
	if ours := hubPointers[theirs]; ours != "" {
		return ours
	}
	if index, ok := strings.CutPrefix(theirs, "/dependencies/"); ok {
		if at, err := strconv.Atoi(index); err == nil {
			return a.dependencyAt(at)
		}
	}
	return theirs
}

// dependencyAt returns the pointer of a dependency of a new task. A task has two lists of
// dependencies, which are merged for the operation.
func (a *params) dependencyAt(index int) string {
	typed := len(hub.DependenciesIn(&a.body, "dependencies"))
	if task, ok := a.said.(*wire.SubmitTask); ok && index >= typed && index < len(task.Dependencies) {
		bare := a.body.Texts("dependency_ids")
		return "/dependency_ids/" + strconv.Itoa(slices.Index(bare, task.Dependencies[index].On))
	}
	return "/dependencies/" + strconv.Itoa(index)
}
