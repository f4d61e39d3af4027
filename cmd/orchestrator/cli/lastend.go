package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// logEnd is how much of the log of an orchestrator in the background is searched for its last words.
const logEnd = 8 << 10

// lastEnd returns when and why the last run of an orchestrator in the background ended with an error, as a
// sentence, or "". dir is its state directory. A later run at a terminal has another end, which only its record has.
func lastEnd(dir string) string {
	name := filepath.Join(dir, "orchestrator.log")
	file, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	if tip, err := os.Stat(filepath.Join(dir, "events.db-tip")); err == nil && tip.ModTime().After(info.ModTime().Add(time.Second)) {
		return ""
	}
	text := make([]byte, min(info.Size(), logEnd))
	if _, err := file.ReadAt(text, info.Size()-int64(len(text))); err != nil && err != io.EOF {
		return ""
	}
	why := lastError(string(bytes.TrimSpace(text)))
	if why == "" {
		return ""
	}
	return fmt.Sprintf("It stopped at %s: %s. See %s", info.ModTime().Local().Format(time.DateTime), why, name)
}

// lastError returns the message of the error at the end of a log, or "" if it ends otherwise.
func lastError(text string) string {
	lines := strings.Split(text, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if why, ok := strings.CutPrefix(lines[i], "Error: "); ok {
			return strings.TrimSuffix(why, ".")
		}
		if !strings.HasPrefix(lines[i], "  ") { // not a reason or a hint of the error
			return ""
		}
	}
	return ""
}
