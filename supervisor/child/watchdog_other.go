//go:build !linux

package child

import (
	"io"
	"time"

	"golang.org/x/sys/unix"
)

// Only Linux has a watchdog, because other systems do not show the environment of a process.
// There, the children of a killed orchestrator live on.

const watchdogName = "orc-watchdog"

// bootClock goes on while the machine is suspended, in spite of its name.
const bootClock = unix.CLOCK_MONOTONIC

type watchdog struct{}

func startWatchdog(string, *delegation, *Handover) (*watchdog, error) { return nil, nil }
func keepWatch(io.Reader)                                             {}
func (w *watchdog) begins(string)                                     {}
func (w *watchdog) ended(string)                                      {}
func (w *watchdog) endAt(time.Duration)                               {}
func (w *watchdog) dismiss()                                          {}
func (o *Handover) dismissWatchdog()                                  {}
func (h *Host) Swept() []Process                                      { return nil }
