package main

import "net/url"

// stream shows the lines of a list of the API until it ends. Who follows one
// may leave at any time, also before the first line, and is told when the
// other side left.
func (a *app) stream(what string, query url.Values, follow bool, show func([]byte) error) error {
	err := a.streamed(what, query, follow, show)
	switch {
	case follow && leftOff(err):
		return nil
	case follow && err == nil && a.recordDoor == nil:
		a.note("The orchestrator has stopped.")
	}
	return err
}

func (a *app) streamed(what string, query url.Values, follow bool, show func([]byte) error) error {
	ctx, stop := a.begin()
	defer stop()
	door, err := a.door()
	if err != nil {
		return err
	}
	done := func() {}
	if !follow { // who follows waits by intent
		done = a.patience("the first " + what)
	}
	body, err := door.get(ctx, what, query)
	done()
	if err != nil {
		return err
	}
	for line, err := range door.lines(ctx, body) {
		if err == nil {
			err = show(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
