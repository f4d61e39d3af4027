package term

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/activity"
)

// A permission shows the command or the changes of files, whatever its client calls them.
func TestPermissionLines(t *testing.T) {
	for input, want := range map[string][]string{
		`{"command":"go get x\nrm -r \u001b[2J","cwd":"/repo"}`:                       {"$ go get x", `$ rm -r \x1b[2J`},
		`{"file_path":"a.go","old_string":"a\n\tb","new_string":"c"}`:                 {"a.go", "- a", "-     b", "+ c"},
		`{"file_path":"a.go","content":"x\n"}`:                                        {"a.go", "+ x"},
		`{"file_path":"a.go","edits":[{"old_string":"a","new_string":""}]}`:           {"- a"},
		`{"changes":[{"path":"/etc/hosts","kind":"update","diff":"-a\n+b\n"}],"n":1}`: {"/etc/hosts", "-a", "+b"},
		`{"path":"b.go","oldText":"a","newText":"b"}`:                                 {"b.go", "- a", "+ b"},
		`{"url":"http://x"}`: {`{"url":"http://x"}`},
		`{"content":7}`:      {`{"content":7}`},
		`{}`:                 nil,
	} {
		require.Equal(t, want, PermissionLines(&activity.Permission{Input: wire.Raw(input)}), input)
	}
}
