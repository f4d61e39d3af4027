package adapter

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The prompt of a task names the actor that changed its text after it was submitted.
func TestPromptNamesWhoChangedTheText(t *testing.T) {
	for changedBy, named := range map[string]bool{"": false, "operator": false, "agent:boss": true} {
		v := taskView{ID: "t1", Name: "fix", Description: "otherwise", SubmittedBy: "operator", ChangedBy: changedBy}
		if named {
			require.Contains(t, v.prompt(), "operator submitted this task, and agent:boss changed its text afterwards.")
		} else {
			require.NotContains(t, v.prompt(), "afterwards")
		}
	}
}
