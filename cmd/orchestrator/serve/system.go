package serve

import (
	"encoding/binary"
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Percentages for debug.SetGCPercent, and the size of the live heap from which there is the least
// garbage.
const (
	muchGarbage  = 400
	gcPercent    = 100
	leastGarbage = 50

	hugeHeap = 256 << 20
)

// usualGarbage is how many bytes of garbage there may be before a collection.
const usualGarbage = 24 << 20

// garbageFor returns the percentage for a live heap of so many bytes. At 100 percent a heap of a few
// megabytes is collected hundreds of times a second while agents talk. A large State, at
// 400 percent, would need gigabytes.
func garbageFor(live uint64) int {
	if live >= hugeHeap {
		return leastGarbage
	}
	const step = 25 // each change stops the world for a moment
	percent := usualGarbage * 100 / max(live, 1) / step * step
	return int(min(max(percent, gcPercent), muchGarbage))
}

// restAfter is how long no collection must have run until memory is returned to the system.
const restAfter = 3 * time.Second

// restBytes is how many bytes a program at rest may allocate meanwhile. A large heap is collected
// seldom, so that no collection does not mean rest.
const restBytes = 1 << 20

// A tender adjusts the percentage after each garbage collection, which runs its finalizer. When no
// further collection follows, the program is idle. The tender then collects once more and returns
// the free memory to the system. The runtime would keep that memory.
type gcTuner struct {
	percent int
	sample  []metrics.Sample
	rest    *time.Timer  // fires when no collection has run for a while
	own     *atomic.Bool // the next collection is that of rest
}

func tendGarbage() {
	own := new(atomic.Bool)
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	last := uint64(0)
	var rest *time.Timer
	rest = time.AfterFunc(restAfter, func() { // without the tender, which must be garbage
		metrics.Read(allocated)
		if now := allocated[0].Value.Uint64(); now-last > restBytes {
			last = now
			rest.Reset(restAfter)
			return
		}
		own.Store(true)
		debug.FreeOSMemory()
	})
	c := &gcTuner{percent: muchGarbage, sample: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}, rest: rest, own: own}
	debug.SetGCPercent(c.percent)
	runtime.SetFinalizer(c, (*gcTuner).look)
}

func (t *gcTuner) look() {
	metrics.Read(t.sample)
	if percent := garbageFor(t.sample[0].Value.Uint64()); percent != t.percent {
		debug.SetGCPercent(percent)
		t.percent = percent
	}
	if !t.own.Swap(false) {
		t.rest.Reset(restAfter)
	}
	runtime.SetFinalizer(t, (*gcTuner).look)
}

// listenerAt returns the program that listens at an address or blocks it. The pid is 0 if
// /proc does not show it.
func listenerAt(address string) (pid int, name string) {
	asked, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return 0, ""
	}
	links := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			if inode, ok := inTheWay(strings.Fields(line), asked); ok {
				links["socket:["+inode+"]"] = true
			}
		}
	}
	if len(links) == 0 {
		return 0, ""
	}
	return whoHas(links)
}

// inTheWay parses a line of the kernel's table of TCP sockets. It reports whether the line
// is a listener that blocks the address, and returns the inode of the socket.
func inTheWay(fields []string, asked *net.TCPAddr) (inode string, ok bool) {
	const listening = "0A"
	if len(fields) < 10 || fields[3] != listening {
		return "", false
	}
	host, port, _ := strings.Cut(fields[1], ":")
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil || int(number) != asked.Port {
		return "", false
	}
	ip, ok := kernelIP(host)
	mine, _ := netip.AddrFromSlice(asked.IP)
	mine = mine.Unmap()
	return fields[9], ok && (ip == mine || ip.IsUnspecified() || !mine.IsValid() || mine.IsUnspecified())
}

// kernelIP parses an address in the form of /proc: words of four bytes in machine order,
// which is little-endian on all supported systems.
func kernelIP(text string) (netip.Addr, bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw)%4 != 0 {
		return netip.Addr{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.BigEndian.PutUint32(raw[i:], binary.LittleEndian.Uint32(raw[i:]))
	}
	ip, ok := netip.AddrFromSlice(raw)
	return ip.Unmap(), ok
}

// whoHas returns a process that has one of the sockets open. It cannot see other orchestrators and the processes of
// other users.
func whoHas(links map[string]bool) (pid int, name string) {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		open, _ := os.ReadDir(filepath.Join(process, "fd"))
		for _, fd := range open {
			if to, _ := os.Readlink(filepath.Join(process, "fd", fd.Name())); !links[to] {
				continue
			}
			pid, _ = strconv.Atoi(filepath.Base(process))
			name, _ := os.ReadFile(filepath.Join(process, "comm"))
			return pid, strings.TrimSpace(string(name))
		}
	}
	return 0, ""
}
