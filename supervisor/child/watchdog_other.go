//go:build !linux

package child

import (
	"io"
	"time"
)

// Only Linux has a watchdog, because other systems do not show the environment of a process.
// There, the children of a killed orchestrator live on.

const watchdogName = "orc-watchdog"

var began = time.Now()

// SinceBoot returns a time that no change of the wall clock moves.
func SinceBoot() time.Duration { return time.Since(began) }

type watchdog struct{}

func startWatchdog(string, *delegation, *Handover) (*watchdog, error) { return nil, nil }
func keepWatch(io.Reader)                                             {}
func (w *watchdog) begins(string)                                     {}
func (w *watchdog) ended(string)                                      {}
func (w *watchdog) endAt(time.Duration)                               {}
func (w *watchdog) dismiss()                                          {}
func (o *Handover) dismissWatchdog()                                  {}
func (h *Host) Swept() []Process                                      { return nil }
