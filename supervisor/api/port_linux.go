package api

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pidAt returns the process of this machine that has the connection with a local address, or 0 if none that this
// user may look at has it.
func pidAt(address string) int {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return 0
	}
	inode := inodeAt(at)
	if inode == "" {
		return 0
	}
	processes, _ := os.ReadDir("/proc") // of one that cannot be read nothing is found
	for _, process := range processes {
		pid, err := strconv.Atoi(process.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		dir := filepath.Join("/proc", process.Name(), "fd")
		files, _ := os.ReadDir(dir)
		for _, file := range files {
			if target, err := os.Readlink(filepath.Join(dir, file.Name())); err == nil && target == "socket:["+inode+"]" {
				return pid
			}
		}
	}
	return 0
}

// inodeAt returns the inode of the socket with a local address, or "".
func inodeAt(at netip.AddrPort) string {
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(name)
		if err != nil {
			continue
		}
		inode := ""
		for lines := bufio.NewScanner(file); inode == "" && lines.Scan(); {
			if fields := strings.Fields(lines.Text()); len(fields) > 9 && fields[9] != "0" && kernelAddress(fields[1]) == at {
				inode = fields[9]
			}
		}
		_ = file.Close()
		if inode != "" {
			return inode
		}
	}
	return ""
}

// kernelAddress reads an address as /proc/net/tcp has it: words of the machine in hexadecimal.
func kernelAddress(text string) netip.AddrPort {
	host, port, _ := strings.Cut(text, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	raw, wrong := hex.DecodeString(host)
	if err != nil || wrong != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	address, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(address.Unmap(), uint16(n))
}
