//go:build !linux

package child

import (
	"io"
	"time"
)

// Only Linux has a watchdog, because other systems do not show the environment of a process.
// There, the children of a killed orchestrator live on.

const watchdogName = "orc-watchdog"

type watchdog struct{}

func startWatchdog(string, *delegation) (*watchdog, error) { return nil, nil }
func keepWatch(io.Reader)                                  {}
func (w *watchdog) begins(string)                          {}
func (w *watchdog) ended(string)                           {}
func (w *watchdog) endAt(time.Time)                        {}
func (w *watchdog) dismiss()                               {}
func (h *Host) Swept() []Process                           { return nil }
