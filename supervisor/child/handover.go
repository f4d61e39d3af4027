package child

import "time"

// A Handed is a child that goes over to the next program. The file descriptors of closed streams are -1.
type Handed struct {
	Run       string    `json:"run"`
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"started_at"`
	Stdin     int       `json:"stdin"`
	Stdout    int       `json:"stdout"` // for a terminal, the same as Stdin
	Stderr    int       `json:"stderr"`
	Temporary string    `json:"temporary,omitzero"` // its own $TMPDIR
	Below     []Seen    `json:"below,omitempty"`    // its descendants, as last seen
}

// A Handover is the state that a host hands over to the host of the next program.
type Handover struct {
	Children []Handed `json:"children"`
	// Foreign lists processes that the host must not signal. It also has the watchdog, because an older program does not
	// know Watchdog, and would take it for an orphan.
	Foreign  []Seen          `json:"foreign"`
	Watchdog *HandedWatchdog `json:"watchdog,omitzero"` // nil if none runs
}

// A HandedWatchdog is the watchdog that runs while one program replaces another. Its pipe stays
// open, so it ends the children if the next program ends before it has a watchdog itself.
type HandedWatchdog struct {
	PID  int      `json:"pid"`
	Pipe int      `json:"pipe"` // file descriptor
	Runs []string `json:"runs"`
	Seen []Seen   `json:"seen"` // of the runs
}

// A Seen is a process that the host did not start itself.
type Seen struct {
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
	if o.Watchdog != nil {
		files = append(files, o.Watchdog.Pipe)
	}
	return files
}

// processesOf returns the processes that have gone over.
func processesOf(seen []Seen) []Process {
	var processes []Process
	for _, s := range seen {
		processes = append(processes, Process{PID: s.PID, Program: s.Program, born: s.Born, group: s.Group})
	}
	return processes
}
