// Package hostlink has the lines between a hub and a host, a machine that runs agents for it.
//
// A host dials the hub and upgrades a request to /api/v1/hosts/link. Then both sides send lines of
// JSON. The host begins with hello, and the hub answers with welcome, or closes the connection. Lines
// about a run have its id. The input and the output of a run are sent in pieces, and each side sends
// only as much as the other has room for, so that one run cannot hold up another.
//
// Lines about a run are numbered in each direction, and kept until the other side has them. So a run
// outlives a link: the next one begins with the lines that the other side lacks.
//
// A run can also outlive its hub. For that, a hub reports from time to time how far a run is
// settled: up to a line, the output of the run is decided about and recorded. Up to a record, all
// messages to the run have arrived. Another hub begins the numbers of the run anew with a start
// line, and the host repeats its output since then. That is only right if the record has nothing
// about the run since then. Otherwise the run is killed, and the agent starts anew.
//
// Each side sends a beat every BeatEvery, and gives the link up after Silence without a line. A host
// kills its agents when no beat was confirmed for its grace. The hub does not start an agent anywhere
// else before that must have happened: see GivenUp.
package hostlink

import (
	"time"

	"orchestrator/wire"
)

// Path is where a host asks for a link, and Protocol the value of the Upgrade header.
const (
	Path     = "/api/v1/hosts/link"
	Protocol = "orchestrator-host"
)

// Version changes with incompatible changes of the lines.
const Version = 3

// Intervals of a link.
const (
	BeatEvery = 2 * time.Second
	Silence   = 3 * BeatEvery

	// Grace is how long agents live on a host without a hub, unless the hub sets another time.
	Grace = 20 * time.Second
)

// A Failure explains why an answer of a host is of no use. Mostly it is the host's own reason: it
// could not perform the operation.
type Failure string

func (f Failure) Error() string { return string(f) }

// GivenUp returns how long after the last beat of a host its agents have ended for certain. The host
// kills them when grace has passed since it sent the last beat that was confirmed.
func GivenUp(grace time.Duration) time.Duration { return grace + Silence }

// Bytes that the other side may not have taken yet, for each run.
const (
	InputRoom  = 64 << 10
	OutputRoom = 1 << 20
	MaxPiece   = 64 << 10

	// HeardEvery is how many bytes of output a hub processes before it confirms them.
	HeardEvery = OutputRoom / 8

	// PieceCost is the cost of a piece of output besides its bytes, so that the number of pieces is
	// limited too.
	PieceCost = 64
)

// The types of lines.
const (
	Hello   = "hello"   // host: its name, labels and capacity
	Welcome = "welcome" // hub
	Refused = "refused" // hub: the reason for refusing the link
	Beat    = "beat"    // both
	Start   = "start"   // hub: start a run
	Started = "started" // host
	Failed  = "failed"  // host: it could not be started
	Input   = "input"   // hub: a piece of stdin
	Taken   = "taken"   // host: so many bytes of input were written to the program, or it takes no more
	Close   = "close"   // hub: stdin ends
	Output  = "output"  // host: a piece of stdout or stderr
	Heard   = "heard"   // hub: it has dealt with so many bytes of output
	Signal  = "signal"  // hub
	Kill    = "kill"    // hub
	Stopped = "stopped" // host: a signal has stopped the leader, or it goes on
	Lost    = "lost"    // host: processes that the run had lost were ended, and it goes on
	Exited  = "exited"  // host: the leader is dead
	Ended   = "ended"   // host: the tree is empty; the last line of a run
	Drain   = "drain"   // host: the hub is to place no more agents on it, and to stop its agents
	Settled = "settled" // hub: how far the runs are settled
	Fetch   = "fetch"   // hub: send a file of the run, which has at most N bytes; or with bytes and no path: do this for its agent, and send the reply; or without both: give that up
	File    = "file"    // host: a piece of it, or an empty one while it is made. The last piece has yes, or a reason why there is none
)

// A Line is one line in either direction. Its fields depend on its type.
type Line struct {
	Type string `json:"type"`
	Run  string `json:"run,omitzero"`
	M    int64  `json:"m,omitzero"`   // the number of a line about a run, from 1
	Got  int64  `json:"got,omitzero"` // the number of the last line about the run that the sender has

	// hello and welcome
	Version  int               `json:"version,omitzero"` // of the lines
	Program  string            `json:"program,omitzero"` // the version of the program
	Labels   map[string]string `json:"labels,omitzero"`
	Capacity int               `json:"capacity,omitzero"` // how many agents it runs at most; 0: any number
	Team     string            `json:"team,omitzero"`     // the name of the shared log, or ""
	Epoch    int64             `json:"epoch,omitzero"`    // of the hub
	Epochs   map[string]int64  `json:"epochs,omitzero"`   // the highest one that the host has seen of each team
	Hub      string            `json:"hub,omitzero"`
	Instance string            `json:"instance,omitzero"` // of the host: the id of its state directory; of the hub: the id of its process
	Grace    time.Duration     `json:"grace,omitzero"`
	Runs     map[string]Going  `json:"runs,omitzero"` // the running runs; also in the beat of a hub, and in settled

	// beat
	Number  int64            `json:"number,omitzero"`  // a hub sends the number of the last beat that it read
	Figures map[string]Usage `json:"figures,omitzero"` // by run; a hub sends none

	// start, started, failed
	Agent        string   `json:"agent,omitzero"`
	Env          []string `json:"env,omitzero"` // variables of this run
	Conversation string   `json:"conversation,omitzero"`
	PID          int      `json:"pid,omitzero"`
	Reason       string   `json:"reason,omitzero"`
	Hint         string   `json:"hint,omitzero"`
	Temporary    bool     `json:"temporary,omitzero"`
	Missing      bool     `json:"missing,omitzero"` // the program is not there
	Unknown      bool     `json:"unknown,omitzero"` // the host's file does not have the agent

	Path string `json:"path,omitzero"` // of fetch; fetch and file have a number

	// input, output, taken, heard, fetch, file
	Stderr bool   `json:"stderr,omitzero"`
	Bytes  []byte `json:"bytes,omitzero"`
	N      int    `json:"n,omitzero"`

	// signal, stopped, lost, exited, ended
	Signal     int    `json:"signal,omitzero"`
	Code       int    `json:"code,omitzero"`
	Yes        bool   `json:"yes,omitzero"`
	LeftOver   []Left `json:"left_over,omitzero"`
	Survivors  []Left `json:"survivors,omitzero"`
	Unverified bool   `json:"unverified,omitzero"`
	HeldOpen   bool   `json:"held_open,omitzero"`

	Error *wire.Error `json:"error,omitzero"` // of refused
}

// Going is the knowledge of each side about a running run.
type Going struct {
	Got int64 `json:"got,omitzero"` // the last line of the other side; in settled: the last one that is settled

	// hello and settled
	Seq   int64 `json:"seq,omitzero"`   // the record up to which all messages to the run have arrived
	Mail  int64 `json:"mail,omitzero"`  // the last message that has arrived
	Waits bool  `json:"waits,omitzero"` // it waits for an answer
	Unfit bool  `json:"unfit,omitzero"` // no other hub can go on with it
}

// Usage is the resource usage of a run.
type Usage struct {
	CPUMS  int64 `json:"cpu_ms"`
	RSS    int64 `json:"rss"`
	Unread int64 `json:"unread"` // bytes of input that the program has not read
	Got    int64 `json:"got"`    // as in a line
}

// A Left is a process that outlived the leader of its run.
type Left struct {
	PID     int    `json:"pid"`
	Program string `json:"program"`
}
