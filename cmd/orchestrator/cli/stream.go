package cli

import (
	"net/url"
)

// Stream calls show for each line of a list of the API. With follow an interrupt is not an
// error, and a note is printed when the orchestrator ends the stream.
func (a *App) Stream(what string, query url.Values, follow bool, show func([]byte) error) error {
	err := a.EachLine(what, query, follow, show)
	switch {
	case follow && leftOff(err):
		return nil
	case follow && err == nil && a.record == nil:
		a.Note("The orchestrator has stopped.")
	}
	return err
}

// EachLine calls show for each document of a stream.
func (a *App) EachLine(what string, query url.Values, follow bool, show func([]byte) error) error {
	ctx, stop := a.Context()
	defer stop()
	door, err := a.Connect()
	if err != nil {
		return err
	}
	done := func() {}
	if !follow { // with follow, waiting is intended
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
