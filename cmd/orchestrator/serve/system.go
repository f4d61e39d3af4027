package serve

import (
	"encoding/binary"
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"orchestrator/supervisor/api"
)

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
		if api.HasFile(process, links) {
			pid, _ = strconv.Atoi(filepath.Base(process))
			name, _ := os.ReadFile(filepath.Join(process, "comm"))
			return pid, strings.TrimSpace(string(name))
		}
	}
	return 0, ""
}
