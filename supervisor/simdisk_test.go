package supervisor

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"
	"github.com/stretchr/testify/require"
)

// A simDisk is the file system of one life of a simulated orchestrator. At one of its writes,
// syncs and truncations the life ends: that operation is done by half, later ones fail, and the
// files stay as they are. Until then some syncs are late.
type simDisk struct {
	vfs.VFS
	folder string
	random *rand.Rand
	late   bool // whether some syncs are late
	oldTip []byte

	mu    sync.Mutex
	left  int // operations until the end; no end if it was not positive
	over  bool
	files map[string]*simFile
}

// A simFile is the knowledge of a simDisk about one file: its content at the last sync, and the
// changes since then, which a power failure may lose in part.
type simFile struct {
	synced  []byte
	pending []change
}

// A change is a write, or a truncation if text is nil.
type change struct {
	at   int64
	text []byte
}

// The names of the files of a record.
var simFiles = []string{"events.db", "events.db-wal", "events.db-tip"}

func newSimDisk(t *testing.T, folder string, random *rand.Rand, left int, late bool) *simDisk {
	d := &simDisk{VFS: vfs.Find("os"), folder: folder, random: random, left: left, late: late, files: make(map[string]*simFile)}
	for _, name := range simFiles {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		d.files[name] = &simFile{synced: text}
	}
	d.oldTip = d.files["events.db-tip"].synced
	return d
}

// An outcome is what happens to an operation.
type outcome int

const (
	done outcome = iota
	half
	failed
)

// next decides about the next operation. The lock must be held.
func (d *simDisk) next() outcome {
	if d.over {
		return failed
	}
	if d.left--; d.left != 0 {
		return done
	}
	d.over = true
	return half
}

// ended reports whether the life has ended.
func (d *simDisk) ended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// image writes the files as the next life finds them into a folder. After a power failure, any of
// the changes since the last sync of a file may be missing.
func (d *simDisk) image(t *testing.T, folder string, power bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	require.NoError(t, os.MkdirAll(folder, 0o700))
	for _, name := range simFiles {
		text, err := os.ReadFile(filepath.Join(d.folder, name))
		require.NoError(t, err)
		switch {
		case !power:
		case name == "events.db-tip": // it is never synced
			if d.random.IntN(2) == 0 {
				text = d.oldTip
			}
		default:
			text = d.files[name].afterPowerFailure(d.random)
		}
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
}

// afterPowerFailure returns the synced content with some of the changes since then.
func (f *simFile) afterPowerFailure(random *rand.Rand) []byte {
	text := append([]byte(nil), f.synced...)
	for _, c := range f.pending {
		switch random.IntN(4) {
		case 0: // lost
		case 1: // torn between sectors
			const sector = 512
			c.text = c.text[:len(c.text)/2/sector*sector]
			fallthrough
		default:
			text = c.apply(text)
		}
	}
	return text
}

func (c change) apply(text []byte) []byte {
	end := c.at + int64(len(c.text))
	if c.text == nil {
		return append(text, make([]byte, max(0, end-int64(len(text))))...)[:end]
	}
	if missing := end - int64(len(text)); missing > 0 {
		text = append(text, make([]byte, missing)...)
	}
	copy(text[c.at:], c.text)
	return text
}

// Open implements vfs.VFS.
func (d *simDisk) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, flags, err := vfsutil.WrapOpen(d.VFS, name, flags)
	return d.opened(name, file), flags, err
}

// OpenFilename implements vfs.VFSFilename.
func (d *simDisk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, flags, err := vfsutil.WrapOpenFilename(d.VFS, name, flags)
	if err != nil {
		return nil, flags, err
	}
	return d.opened(name.String(), file), flags, nil
}

func (d *simDisk) opened(name string, file vfs.File) vfs.File {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.files[filepath.Base(name)]
	if known == nil { // a temporary file, which no later life sees
		known = new(simFile)
	}
	return &simHandle{File: file, disk: d, known: known}
}

// A simHandle is an open file of a simDisk.
type simHandle struct {
	vfs.File
	disk  *simDisk
	known *simFile
}

func (h *simHandle) WriteAt(p []byte, at int64) (int, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	switch h.disk.next() {
	case failed:
		return 0, sqlite3.IOERR_WRITE
	case half:
		n, _ := h.File.WriteAt(p[:len(p)/2], at)
		h.known.pending = append(h.known.pending, change{at, append([]byte{}, p[:n]...)})
		return n, sqlite3.IOERR_WRITE
	}
	h.known.pending = append(h.known.pending, change{at, append([]byte{}, p...)})
	return h.File.WriteAt(p, at)
}

func (h *simHandle) Truncate(size int64) error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.disk.next() != done {
		return sqlite3.IOERR_TRUNCATE
	}
	h.known.pending = append(h.known.pending, change{at: size})
	return h.File.Truncate(size)
}

func (h *simHandle) Sync(flags vfs.SyncFlag) error {
	if wait := h.disk.delay(); wait > 0 {
		<-time.After(wait)
	}
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.disk.next() != done {
		return sqlite3.IOERR_FSYNC
	}
	for _, c := range h.known.pending {
		h.known.synced = c.apply(h.known.synced)
	}
	h.known.pending = nil
	return nil // the files of this machine need not be durable
}

// delay returns how late a sync is.
func (d *simDisk) delay() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !d.late || d.over:
		return 0
	case d.random.IntN(50) == 0:
		return time.Duration(d.random.IntN(3000)) * time.Millisecond
	case d.random.IntN(200) == 0: // later than requests wait
		return time.Duration(10+d.random.IntN(30)) * time.Second
	}
	return 0
}

func (h *simHandle) SharedMemory() vfs.SharedMemory { return vfsutil.WrapSharedMemory(h.File) }
func (h *simHandle) LockState() vfs.LockLevel       { return vfsutil.WrapLockState(h.File) }
func (h *simHandle) PersistWAL() bool               { return vfsutil.WrapPersistWAL(h.File) }
func (h *simHandle) SetPersistWAL(keep bool)        { vfsutil.WrapSetPersistWAL(h.File, keep) }
