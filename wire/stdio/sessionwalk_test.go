package stdio

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// The required members, in the terms of the protocol. Each group of members belongs to the
// object at the place that is its key. A * is any item or any member.
var (
	envelopeNeeds = map[string]string{
		"":            "message_id timestamp sequence_number from_agent to_agent message_type payload",
		"/from_agent": "agent_id agent_type",
		"/to_agent":   "agent_id agent_type",
	}
	payloadNeeds = map[string]map[string]string{
		"task_assignment": {
			"/payload":                                  "task priority",
			"/payload/task":                             "task_id task_description context constraints acceptance_criteria",
			"/payload/task/context":                     "specs reference_files",
			"/payload/task/context/specs/*":             "path reason",
			"/payload/task/context/reference_files/*":   "path reason",
			"/payload/task/context/previous_attempts/*": "attempt_number outcome feedback",
			"/payload/task/constraints":                 "scope testing_required must_not_break",
			"/payload/dependencies/*":                   "depends_on dependency_type",
		},
		"task_progress": {"/payload": "task_id progress_percent current_step files_modified_so_far"},
		"task_completion": {
			"/payload":                          "task_id status changes summary self_review",
			"/payload/changes":                  "files_created files_modified files_deleted",
			"/payload/changes/files_created/*":  "path change_type",
			"/payload/changes/files_modified/*": "path change_type",
			"/payload/self_review":              "tests_run tests_passed type_check_passed",
		},
		"review_request": {
			"/payload":                            "review_id task_id scope criteria context",
			"/payload/scope":                      "files focus_areas",
			"/payload/criteria":                   "must_pass_tests must_pass_type_check",
			"/payload/criteria/custom_checks/*":   "name command expected_exit_code",
			"/payload/context":                    "task_description acceptance_criteria",
			"/payload/context/previous_reviews/*": "review_number verdict key_findings",
		},
		"review_result": {
			"/payload":                         "review_id task_id verdict findings verification summary",
			"/payload/findings/*":              "finding_id severity category location description rationale",
			"/payload/findings/*/location":     "file",
			"/payload/verification":            "tests type_check custom",
			"/payload/verification/tests":      "passed",
			"/payload/verification/type_check": "passed",
			"/payload/verification/lint":       "passed",
			"/payload/verification/custom/*":   "passed",
			"/payload/required_changes/*":      "change_id priority related_findings description",
		},
		"feedback":        {"/payload": "feedback_type subject content action_required"},
		"status_query":    {},
		"status_response": {},
		"abort":           {"/payload": "scope target_id reason cleanup_required"},
		"acknowledgment":  {},
	}
	// These are forgiven except in strict mode.
	forgivenPlaces = []string{
		"/sequence_number", "/payload/task/constraints/must_not_break", "/payload/findings/*/rationale", "/payload/verification/custom",
	}
	// The words allowed at a place.
	placeWords = map[string]string{
		"/from_agent/agent_type":                        "architect developer reviewer",
		"/to_agent/agent_type":                          "architect developer reviewer",
		"/payload/priority":                             "high medium low",
		"/payload/dependencies/*/dependency_type":       "hard soft",
		"/payload/status":                               "completed partial failed",
		"/payload/changes/files_created/*/change_type":  "created modified deleted",
		"/payload/changes/files_modified/*/change_type": "created modified deleted",
		"/payload/scope/focus_areas/*":                  "security performance style logic error_handling test_coverage",
		"/payload/verdict":                              "approved changes_requested rejected",
		"/payload/findings/*/severity":                  "critical major minor suggestion",
		"/payload/findings/*/category":                  "bug security performance style logic test",
		"/payload/required_changes/*/priority":          "must_fix should_fix consider",
		"/payload/feedback_type":                        "clarification correction guidance question",
		"abort/payload/scope":                           "task session",
	}
)

// places yields the pointer and the value of everything within a value.
func places(value any, pointer string) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		within := func(key string, inner any) bool {
			if !yield(pointer+"/"+key, inner) {
				return false
			}
			for p, v := range places(inner, pointer+"/"+key) {
				if !yield(p, v) {
					return false
				}
			}
			return true
		}
		switch v := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if !within(key, v[key]) {
					return
				}
			}
		case []any:
			for i := range v {
				if !within(strconv.Itoa(i), v[i]) {
					return
				}
			}
		}
	}
}

// with returns a document with another value at a place; gone removes the member.
func with(document any, pointer string, value any) any {
	key, rest, deeper := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	set := func(inner any) any {
		if deeper {
			return with(inner, rest, value)
		}
		return value
	}
	switch v := document.(type) {
	case map[string]any:
		changed := maps.Clone(v)
		if changed[key] = set(v[key]); changed[key] == gone {
			delete(changed, key)
		}
		return changed
	case []any:
		i, _ := strconv.Atoi(key)
		changed := slices.Clone(v)
		changed[i] = set(v[i])
		return changed
	}
	return document
}

var gone any = new(int)

// general returns a pointer with a * for each item and each custom verification.
func general(pointer string) string {
	words := strings.Split(pointer, "/")
	for i, word := range words {
		if _, err := strconv.Atoi(word); err == nil || i > 0 && words[i-1] == "custom" {
			words[i] = "*"
		}
	}
	return strings.Join(words, "/")
}

// must reports whether a place of a message is required.
func must(kind, pointer string) bool {
	in, key := general(pointer[:strings.LastIndex(pointer, "/")]), pointer[strings.LastIndex(pointer, "/")+1:]
	return slices.Contains(strings.Fields(envelopeNeeds[in]), key) || slices.Contains(strings.Fields(payloadNeeds[kind][in]), key)
}

// free reports whether any value is allowed at a place.
func free(kind, pointer string) bool {
	return kind == "status_response" && strings.HasPrefix(pointer, "/payload/") || kind == "task_completion" && strings.HasPrefix(pointer, "/payload/error")
}

// requireOneProblem requires that a document is refused for exactly one place.
func requireOneProblem(t *testing.T, document any, strict bool, pointer string) string {
	t.Helper()
	line := encoded(t, document)
	err := judged(line, strict)
	require.NotNil(t, err, "%s\n%s", pointer, line)
	require.Len(t, err.Details["errors"], 1, "%v\n%s", err.Complaints(), line)
	require.Equal(t, pointer, err.Details["pointer"], "%s", line)
	if err.Code != wire.CodeUnknownType {
		require.Equal(t, wire.CodeInvalid, err.Code)
	}
	return err.Message
}

// TestEveryMemberOfSessionMessagesIsMissed omits every member of every message, one by one. A
// required member is an error at its place, a forgiven one is noted, and any other is optional.
//
// Rows: C-03..C-15, C-18..C-21, C-23..C-32, C-34..C-37, C-39..C-44, C-46..C-51, C-53..C-67,
// C-70, C-80, C-97, K-23, T-25.
func TestEveryMemberOfSessionMessagesIsMissed(t *testing.T) {
	for kind, example := range sessionExamples(t) {
		needs := 0
		for pointer, value := range places(example, "") {
			key := pointer[strings.LastIndex(pointer, "/")+1:]
			if _, err := strconv.Atoi(key); err == nil || pointer == "/payload" && value == nil {
				continue // an item of a list
			}
			without := with(example, pointer, gone)
			line := string(encoded(t, without))
			if !must(kind, pointer) {
				require.NotNil(t, heard(t, line, true), pointer)
				continue
			}
			needs++
			require.Equal(t, spokenOf(pointer)+" is missing", requireOneProblem(t, without, true, pointer))
			if slices.Contains(forgivenPlaces, general(pointer)) {
				require.Contains(t, heard(t, line, false).Notes, pointer+": "+spokenOf(pointer)+" is missing, which is tolerated")
				continue
			}
			require.Equal(t, spokenOf(pointer)+" is missing", requireOneProblem(t, without, false, pointer))
		}
		want := 0
		for _, group := range []map[string]string{envelopeNeeds, payloadNeeds[kind]} {
			for _, keys := range group {
				want += len(strings.Fields(keys))
			}
		}
		require.GreaterOrEqual(t, needs, want, "%s: the example does not have all that must be there", kind)
	}
}

// TestEveryKindOfValueIsChecked replaces every value by one of another type, one by one. Each is
// refused at its place.
//
// Rows: C-03..C-15, C-18..C-21, C-23..C-32, C-34..C-37, C-39..C-44, C-46..C-51, C-53..C-67,
// C-70, C-80, K-23.
func TestEveryKindOfValueIsChecked(t *testing.T) {
	kinds := map[string]any{
		"null": nil, "number": json.Number("7"), "truth": true, "text": "0c8e2f14-5b7a-4d39-8f21-6a9e0b3c4dff", "list": []any{}, "object": map[string]any{},
	}
	for kind, example := range sessionExamples(t) {
		for pointer, value := range places(example, "") {
			if free(kind, pointer) {
				continue
			}
			for name, other := range kinds {
				if name == kindOf(value) {
					continue
				}
				for _, strict := range []bool{false, true} {
					requireOneProblem(t, with(example, pointer, other), strict, pointer)
				}
			}
		}
	}
}

func kindOf(value any) string {
	switch value.(type) {
	case json.Number:
		return "number"
	case bool:
		return "truth"
	case string:
		return "text"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	}
	return "null"
}

// TestEveryWordOfSessionMessages checks that each word is accepted and no other: not in
// capitals, not with a space, and no word of another list.
//
// Rows: C-08, C-13, C-15, C-19, C-39, C-44, C-47, C-53, C-61, C-62, C-66, C-67, C-70, C-80.
func TestEveryWordOfSessionMessages(t *testing.T) {
	seen := make(map[string]bool)
	for kind, example := range sessionExamples(t) {
		for pointer := range places(example, "") {
			place := general(pointer)
			if place == "/payload/scope" {
				place = kind + place
			}
			if pointer == "/payload/priority" && kind != "task_assignment" {
				continue
			}
			words := strings.Fields(placeWords[place])
			if len(words) == 0 {
				continue
			}
			seen[place] = true
			for _, word := range words {
				require.NotNil(t, heard(t, string(encoded(t, with(example, pointer, word))), true))
			}
			for _, wrong := range []string{"", " ", "nonsense", "urgent", "ok", strings.ToUpper(words[0]), words[0] + " ", words[0] + "\x00", strings.Join(words, "|")} {
				said := requireOneProblem(t, with(example, pointer, wrong), false, pointer)
				require.Contains(t, said, "must be one of "+object.Choices(words), wrong)
			}
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(placeWords)), slices.Sorted(maps.Keys(seen)))
	for _, wrong := range []string{"", "nonsense", "acknowledgement", "Task_Assignment", "error"} {
		requireOneProblem(t, with(sessionExamples(t)["abort"], "/message_type", wrong), false, "/message_type")
	}
}

// TestNothingInSessionMessagesStandsTwice repeats every known member, one by one. Each is
// refused at its place, because two readers could see two messages.
//
// Rows: C-97, K-10.
func TestNothingInSessionMessagesStandsTwice(t *testing.T) {
	for kind, example := range sessionExamples(t) {
		for pointer, value := range places(example, "") {
			key := pointer[strings.LastIndex(pointer, "/")+1:]
			if _, err := strconv.Atoi(key); err == nil || free(kind, pointer) {
				continue
			}
			const first = "the first of two"
			line := string(encoded(t, with(with(example, pointer, gone), pointer[:len(pointer)-len(key)]+first, value)))
			member := string(encoded(t, value))
			line = strings.Replace(line, `"`+first+`":`+member, `"`+key+`":`+member+`,"`+key+`":`+member, 1)
			_, err := session.Read([]byte(line), 64)
			require.NotNil(t, err, line)
			require.Equal(t, []object.Problem{{Pointer: pointer, Message: spokenOf(pointer) + " stands twice"}}, err.Details["errors"], line)
		}
	}
}

// spokenOf returns the name that error messages use for a pointer.
func spokenOf(pointer string) string {
	at := strings.LastIndexByte(pointer, '/')
	return (&object.Reader{Pointer: pointer[:at]}).Named(pointer[at+1:])
}
