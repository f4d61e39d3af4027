package api

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// initialPIDs is the PID namespace of the machine, as /proc/self/ns/pid has it. Containers have other namespaces.
const initialPIDs = "pid:[4026531836]"

// holdersOf returns the processes that may have a connection within this machine, from one address to another: the
// process that has it, or else the processes that hide their connections from this user. An empty result means that no
// process has the connection. known reports whether the result is certain: in a container, the process may be outside.
// The folder proc is /proc.
func holdersOf(proc, from, to string) (pids []int, known bool) {
	here, err := netip.ParseAddrPort(to)
	there, wrong := netip.ParseAddrPort(from)
	if err != nil || wrong != nil || !there.Addr().Unmap().IsLoopback() {
		return nil, false
	}
	inode, owner, err := socketAt(proc, there, here)
	if err != nil {
		return nil, false
	}
	if inode != "0" {
		if pids = having(proc, inode, owner); len(pids) > 0 {
			return pids, true
		}
	}
	space, _ := os.Readlink(filepath.Join(proc, "self", "ns", "pid"))
	_, err = os.ReadFile(filepath.Join(proc, "1", "status")) // processes of other users may be hidden
	return nil, err == nil && space == initialPIDs
}

// having returns the process that has a socket, or else the processes of the socket's owner that do not show their
// files to this user.
func having(proc, inode, owner string) (hidden []int) {
	processes, _ := os.ReadDir(proc)
	for _, process := range processes {
		pid, err := strconv.Atoi(process.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		path := filepath.Join(proc, process.Name())
		if _, err := os.ReadDir(filepath.Join(path, "fd")); err != nil && isUser(filepath.Join(path, "status"), owner) {
			hidden = append(hidden, pid)
		}
		if HasFile(path, map[string]bool{"socket:[" + inode + "]": true}) {
			return []int{pid}
		}
	}
	return hidden
}

// HasFile reports whether a process, given by its folder in /proc, has one of some files. It looks at the main thread
// and at another one: an orchestrator forks on its main thread, which has few files.
func HasFile(process string, links map[string]bool) bool {
	tables := []string{filepath.Join(process, "fd")}
	threads, _ := os.ReadDir(filepath.Join(process, "task"))
	for _, thread := range threads {
		if len(tables) == 1 && thread.Name() != filepath.Base(process) {
			tables = append(tables, filepath.Join(process, "task", thread.Name(), "fd"))
		}
	}
	for _, table := range tables {
		files, _ := os.ReadDir(table)
		for _, file := range files {
			if target, err := os.Readlink(filepath.Join(table, file.Name())); err == nil && links[target] {
				return true
			}
		}
	}
	return false
}

// isUser reports whether a file of the kind /proc/PID/status names a user. The file of a process that has ended
// names none.
func isUser(status, user string) bool {
	text, _ := os.ReadFile(status)
	_, rest, _ := strings.Cut(string(text), "\nUid:")
	ids, _, _ := strings.Cut(rest, "\n")
	return slices.Contains(strings.Fields(ids), user)
}

// socketAt returns the inode of the socket with a local and a remote address, and its user. The inode is 0 if no
// process has the socket, or if the socket does not exist.
func socketAt(proc string, local, remote netip.AddrPort) (inode, owner string, err error) {
	for _, name := range []string{"tcp", "tcp6"} {
		file, err := os.Open(filepath.Join(proc, "net", name))
		if err != nil && name == "tcp" {
			return "", "", err
		}
		if err != nil { // a machine without IPv6
			continue
		}
		lines := bufio.NewScanner(file)
		for inode == "" && lines.Scan() {
			fields := strings.Fields(lines.Text())
			if len(fields) > 9 && kernelAddress(fields[1]) == local && kernelAddress(fields[2]) == remote {
				owner, inode = fields[7], fields[9]
			}
		}
		err = lines.Err()
		_ = file.Close()
		if inode != "" || err != nil {
			return inode, owner, err
		}
	}
	return "0", "", nil
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
