package api

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A procTree is a folder like /proc.
type procTree struct {
	t   *testing.T
	dir string
}

// process adds a process of a user with a file. Without a file it does not show its files.
func (p procTree) process(pid, user int, file string) {
	p.t.Helper()
	dir := filepath.Join(p.dir, fmt.Sprint(pid))
	require.NoError(p.t, os.MkdirAll(dir, 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, "status"), fmt.Appendf(nil, "Name:\tx\nUid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", user), 0o644))
	if file == "" {
		require.NoError(p.t, os.WriteFile(filepath.Join(dir, "fd"), nil, 0o644)) // reading this folder fails
		return
	}
	require.NoError(p.t, os.Mkdir(filepath.Join(dir, "fd"), 0o755))
	require.NoError(p.t, os.Symlink(file, filepath.Join(dir, "fd", "3")))
}

// thread adds a thread with a file to a process.
func (p procTree) thread(pid, thread int, file string) {
	p.t.Helper()
	dir := filepath.Join(p.dir, fmt.Sprint(pid), "task", fmt.Sprint(thread), "fd")
	require.NoError(p.t, os.MkdirAll(dir, 0o755))
	require.NoError(p.t, os.Symlink(file, filepath.Join(dir, "3")))
}

// space sets the PID namespace.
func (p procTree) space(name string) {
	p.t.Helper()
	require.NoError(p.t, os.MkdirAll(filepath.Join(p.dir, "self", "ns"), 0o755))
	require.NoError(p.t, os.Symlink(name, filepath.Join(p.dir, "self", "ns", "pid")))
}

// connections has one connection of user 1000 from port 256 to port 7433, and the end of it here. A connection from
// the same port leads elsewhere.
const connections = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0100 0100007F:0050 01 00000000:00000000 00:00000000 00000000  1000        0 70 1 0 20 4 30 10 -1
   1: 0100007F:1D09 0100007F:0100 01 00000000:00000000 00:00000000 00000000  1000        0 71 1 0 20 4 30 10 -1
   2: 0100007F:0100 0100007F:1D09 01 00000000:00000000 00:00000000 00000000  1000        0 INODE 1 0 20 4 30 10 -1
`

func TestHoldersOfAConnection(t *testing.T) {
	const from, to = "127.0.0.1:256", "127.0.0.1:7433"
	for name, test := range map[string]struct {
		inode string // of the socket, 77 by default
		add   func(procTree)
		from  string
		pids  []int
		known bool
	}{
		"not its main thread": {add: func(p procTree) {
			p.process(5, 1000, "socket:[70]")
			p.thread(5, 5, "socket:[70]")
			p.thread(5, 6, "socket:[77]")
		}, pids: []int{5}, known: true},
		"one process": {add: func(p procTree) {
			p.process(5, 1000, "socket:[70]")
			p.process(6, 1000, "")
			p.process(7, 1000, "socket:[77]")
		}, pids: []int{7}, known: true},
		"a process that hides its files": {add: func(p procTree) {
			p.process(5, 1000, "socket:[70]")
			p.process(6, 1000, "")
			p.process(7, 1001, "")
		}, pids: []int{6}, known: true},
		"nobody":                     {add: func(p procTree) { p.process(5, 1000, "socket:[70]") }, known: true},
		"the process has closed it":  {inode: "0", add: func(p procTree) { p.process(6, 1000, "") }, known: true},
		"no such connection":         {from: "127.0.0.1:257", known: true},
		"from another machine":       {from: "192.0.2.1:256"},
		"nobody, and in a container": {add: func(p procTree) { p.space("pid:[7]") }},
		"found, though in a container": {add: func(p procTree) {
			p.space("pid:[7]")
			p.process(7, 1000, "socket:[77]")
		}, pids: []int{7}, known: true},
		"processes of others are hidden": {add: func(p procTree) { require.NoError(t, os.Remove(filepath.Join(p.dir, "1", "status"))) }},
		"no list of connections":         {add: func(p procTree) { require.NoError(t, os.RemoveAll(filepath.Join(p.dir, "net"))) }},
	} {
		t.Run(name, func(t *testing.T) {
			p := procTree{t: t, dir: t.TempDir()}
			p.process(1, 0, "socket:[1]")
			require.NoError(t, os.Mkdir(filepath.Join(p.dir, "net"), 0o755))
			text := strings.Replace(connections, "INODE", cmp.Or(test.inode, "77"), 1)
			require.NoError(t, os.WriteFile(filepath.Join(p.dir, "net", "tcp"), []byte(text), 0o644))
			if test.add != nil {
				test.add(p)
			}
			if _, err := os.Lstat(filepath.Join(p.dir, "self")); err != nil {
				p.space(initialPIDs)
			}
			pids, known := holdersOf(p.dir, cmp.Or(test.from, from), to)
			require.Equal(t, test.known, known)
			require.Equal(t, test.pids, pids)
		})
	}
}
