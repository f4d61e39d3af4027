package notify

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orchestrator/wire/object"
)

// A Dead is a message that could not be delivered.
type Dead struct {
	At       string     `json:"at"` // of the last attempt
	Attempts int        `json:"attempts"`
	Error    string     `json:"error"`
	Message  object.Raw `json:"message"`
}

// maxDead is the most bytes of dead letters that are kept. The oldest are removed first.
const maxDead = 4 << 20

// AddDead adds a message to the dead letters of a state directory.
func AddDead(dir string, d Dead) error {
	return changeDead(dir, func(all []Dead) []Dead { return append(all, d) })
}

// ReadDead returns the dead letters of a state directory, oldest first.
func ReadDead(dir string) (all []Dead, err error) {
	if _, err := os.Stat(deadFile(dir)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	err = changeDead(dir, func(found []Dead) []Dead {
		all = found
		return found
	})
	return all, err
}

// RemoveDead removes a dead letter, which was delivered or is to be forgotten.
func RemoveDead(dir string, gone Dead) error {
	return changeDead(dir, func(all []Dead) (rest []Dead) {
		for _, d := range all {
			if d.At != gone.At || !bytes.Equal(d.Message, gone.Message) {
				rest = append(rest, d)
			}
		}
		return rest
	})
}

func deadFile(dir string) string { return filepath.Join(dir, "notify-dead.jsonl") }

// changeDead changes the file of dead letters while it holds the lock of the file. Lines that it cannot read stay,
// except the beginning of a line at the end, which a full disk leaves.
func changeDead(dir string, change func([]Dead) []Dead) error {
	file, err := os.OpenFile(deadFile(dir), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	var before []Dead
	var after []byte
	for line := range bytes.Lines(text) {
		var d Dead
		switch err := object.DecodeOwn(bytes.TrimSpace(line), &d); {
		case err == nil:
			before = append(before, d)
		case bytes.HasSuffix(line, []byte("\n")):
			after = append(after, line...)
		}
	}
	for _, d := range change(before) {
		line, err := object.Encode(d)
		if err != nil {
			return fmt.Errorf("writing a dead letter: %w", err)
		}
		after = append(append(after, line...), '\n')
	}
	for len(after) > maxDead {
		after = after[bytes.IndexByte(after, '\n')+1:]
	}
	if bytes.Equal(after, text) {
		return nil
	}
	if _, err := file.WriteAt(after, 0); err != nil {
		return err
	}
	return file.Truncate(int64(len(after)))
}
