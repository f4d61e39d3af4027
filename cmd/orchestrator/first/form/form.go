// Package form is the form of a command line that a program passes to the running orchestrator, and of its answer.
package form

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// Path is the path of the requests.
const Path = "/api/v1/command"

// A Command is a command line and its surroundings.
type Command struct {
	Program string // the file of the program: see Program
	Dir     string // the working directory
	Columns [2]int // the width of the terminals at stdout and stderr; 0: not a terminal
	Args    []string
	Environ []string
}

// Append appends the command: texts that end with a zero byte, which none contains.
func (c *Command) Append(b []byte) []byte {
	head := []string{c.Program, c.Dir, strconv.Itoa(c.Columns[0]), strconv.Itoa(c.Columns[1]), strconv.Itoa(len(c.Args))}
	for _, texts := range [][]string{head, c.Args, c.Environ} {
		for _, text := range texts {
			b = append(append(b, text...), 0)
		}
	}
	return b
}

// Read reads a command. It reports false if the text is not one.
func Read(b []byte) (c Command, ok bool) {
	var texts []string
	for len(b) > 0 {
		text, rest, ended := bytes.Cut(b, []byte{0})
		if !ended {
			return c, false
		}
		texts, b = append(texts, string(text)), rest
	}
	if len(texts) < 5 {
		return c, false
	}
	var numbers [3]int
	for i := range numbers {
		n, err := strconv.Atoi(texts[2+i])
		if err != nil || n < 0 {
			return c, false
		}
		numbers[i] = n
	}
	c.Program, c.Dir, c.Columns = texts[0], texts[1], [2]int{numbers[0], numbers[1]}
	rest := texts[5:]
	if numbers[2] > len(rest) {
		return c, false
	}
	c.Args, c.Environ = rest[:numbers[2]], rest[numbers[2]:]
	return c, true
}

// The kinds of frames of an answer.
const (
	Stdout  = 'o'
	Stderr  = 'e'
	Exit    = 'x' // the last frame, with the exit code
	Decline = 'd' // the last frame: nothing was done or printed, and the caller must run the command itself
)

// AppendFrame appends a frame: its kind, the length of its text, a space, and the text.
func AppendFrame(b []byte, kind byte, text []byte) []byte {
	b = strconv.AppendInt(append(b, kind), int64(len(text)), 10)
	return append(append(b, ' '), text...)
}

// NextFrame returns the first frame of b and the bytes behind it. It reports false if b has no whole frame.
func NextFrame(b []byte) (kind byte, text, rest []byte, ok bool) {
	head, rest, ok := bytes.Cut(b, []byte{' '})
	if !ok || len(head) < 2 {
		return 0, nil, b, false
	}
	n, err := strconv.Atoi(string(head[1:]))
	if err != nil || n < 0 || n > len(rest) {
		return 0, nil, b, false
	}
	return head[0], rest[:n], rest[n:], true
}

// Program identifies the file of this program, or returns "". A program that was replaced has another identity.
func Program() string {
	info, err := os.Stat("/proc/self/exe")
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	var b []byte
	for _, n := range []int64{int64(stat.Dev), int64(stat.Ino), stat.Size, info.ModTime().UnixNano()} {
		b = append(strconv.AppendInt(b, n, 10), ':')
	}
	return string(b)
}
