package runner

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/google/uuid"
)

// A Memory has the data of a host in its state directory.
type Memory struct {
	Instance string           // the name of the directory; a hub takes programs with the same one for the same host
	Epochs   map[string]int64 // the highest epoch that this host has seen of each team
	path     string           // of the file with the epochs
}

// Remember reads the Memory in a directory. It chooses the name of the directory the first time.
func Remember(dir string) (Memory, error) {
	m := Memory{path: filepath.Join(dir, "epochs")}
	text, _ := os.ReadFile(m.path)
	if json.Unmarshal(text, &m.Epochs) != nil || m.Epochs == nil {
		m.Epochs = make(map[string]int64)
	}
	path := filepath.Join(dir, "instance")
	name, err := os.ReadFile(path)
	if err != nil || len(name) == 0 {
		name = []byte(uuid.NewString())
		err = replace(path, name)
	}
	m.Instance = string(name)
	return m, err
}

// note stores the epoch of a team.
func (m *Memory) note(team string, epoch int64) error {
	m.Epochs[team] = epoch
	text, err := json.Marshal(m.Epochs)
	if err != nil {
		return err
	}
	return replace(m.path, text)
}

// replace writes a file that is whole even after a crash.
func replace(path string, text []byte) error {
	next, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(next.Name())
	_, err = next.Write(text)
	if err == nil {
		err = next.Sync()
	}
	if err = errors.Join(err, next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}
