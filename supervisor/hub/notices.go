package hub

import (
	"context"
	"os"
	"sync/atomic"

	"orchestrator/supervisor/config"
	"orchestrator/supervisor/notify"
	"orchestrator/wire"
)

// notices are the part of a hub that notifies people.
type notices struct {
	place    *Place
	file     *File
	own      *requester
	config   *config.Config
	notifier *notify.Notifier
	terminal atomic.Pointer[notify.Terminal]
}

// Start begins to tell people.
func (n *notices) Start(context.Context) error {
	n.tell(n.config)
	return nil
}

// Stop ends that.
func (n *notices) Stop() { n.notifier.Close() }

// tell begins to notify people by a configuration, in place of the one before.
func (n *notices) tell(c *config.Config) {
	o, err := notify.Read(context.Background(), c, n.file.Base, n.place.Run)
	if err != nil {
		n.place.Log.Error("some notifications are not sent", "error", err)
	}
	if n.notifier != nil {
		n.notifier.Close()
		o.Told = n.notifier.Told()
	}
	o.Latest, o.Log = n.own.Seq(), n.place.Log.Named("notify")
	o.Events = n.own.Follow
	n.notifier = notify.Start(o)
	n.terminal.Store(notify.OfTerminal(c, os.Getenv))
}

// signal returns the text that the terminal gets because of an event.
func (n *notices) signal(e *wire.Event) string { return n.terminal.Load().Signal(e) }
