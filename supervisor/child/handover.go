package child

import "time"

// A Handed is a child that goes over to the next program. The file descriptors are -1 where there
// is no stream any more.
type Handed struct {
	Run       string    `json:"run"`
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"started_at"`
	Stdin     int       `json:"stdin"`
	Stdout    int       `json:"stdout"` // for a terminal, the same as Stdin
	Stderr    int       `json:"stderr"`
	Temporary string    `json:"temporary,omitzero"` // its own $TMPDIR
}

// A Handover is what a host hands over to the host of the next program.
type Handover struct {
	Children []Handed  `json:"children"`
	Foreign  []Foreign `json:"foreign"`
}

// A Foreign is a process that the host did not start and must not signal.
type Foreign struct {
	PID     int    `json:"pid"`
	Born    uint64 `json:"born"`
	Group   int    `json:"group"`
	Program string `json:"program"`
}

// Files returns the file descriptors that must stay open.
func (o *Handover) Files() []int {
	var files []int
	for _, c := range o.Children {
		for _, fd := range []int{c.Stdin, c.Stdout, c.Stderr} {
			if fd >= 0 {
				files = append(files, fd)
			}
		}
	}
	return files
}
