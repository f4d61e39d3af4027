package cli

import (
	"net/url"
)

// Stream shows the lines of a list of the API until it ends. Who follows one
// may leave at any time, also before the first line, and is told when the
// other side left.
func (a *App) Stream(what string, query url.Values, follow bool, show func([]byte) error) error {
	err := a.EachLine(what, query, follow, show)
	switch {
	case follow && leftOff(err):
		return nil
	case follow && err == nil && a.recordDoor == nil:
		a.Note("The orchestrator has stopped.")
	}
	return err
}

// EachLine shows each document of a stream.
func (a *App) EachLine(what string, query url.Values, follow bool, show func([]byte) error) error {
	ctx, stop := a.Context()
	defer stop()
	door, err := a.Connect()
	if err != nil {
		return err
	}
	done := func() {}
	if !follow { // who follows waits by intent
		done = a.ShowWait("the first " + what)
	}
	body, err := door.Get(ctx, what, query)
	done()
	if err != nil {
		return err
	}
	for line, err := range door.Lines(ctx, body) {
		if err == nil {
			err = show(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
