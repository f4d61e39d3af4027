package adapter

import (
	"fmt"
	"os"
	"path/filepath"
)

// maxWire is the size of a file of a WireLog. There are two: the older one has the name of WireOld.
const maxWire = 8 << 20

// The files of a WireLog. Each line of them is {"at":…,"from":"client|orchestrator","line":…}.
const (
	WireNew = "wire-1.jsonl"
	WireOld = "wire-0.jsonl"
)

// A WireLog keeps the lines between the orchestrator and a client in files. It is used by one
// goroutine.
type WireLog struct {
	Dir  string
	Size int64 // of a file; 0: maxWire

	file *os.File
	size int64
}

// Write appends whole lines. When the file is full, it becomes the older one.
func (w *WireLog) Write(text []byte) (int, error) {
	limit := w.Size
	if limit == 0 {
		limit = maxWire
	}
	if w.file != nil && w.size+int64(len(text)) > limit {
		_ = w.Close()
		if err := os.Rename(filepath.Join(w.Dir, WireNew), filepath.Join(w.Dir, WireOld)); err != nil {
			return 0, fmt.Errorf("rotating the wire log: %w", err)
		}
	}
	if w.file == nil {
		if err := w.open(); err != nil {
			return 0, err
		}
		if w.size > 0 && w.size+int64(len(text)) > limit {
			return w.Write(text) // the file of an earlier run is full
		}
	}
	n, err := w.file.Write(text)
	w.size += int64(n)
	return n, err
}

func (w *WireLog) open() error {
	if err := os.MkdirAll(w.Dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(w.Dir, WireNew), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	end, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return err
	}
	w.file, w.size = f, end.Size()
	return nil
}

// Close closes the file. A later Write opens it again.
func (w *WireLog) Close() error {
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file = nil
	return f.Close()
}
