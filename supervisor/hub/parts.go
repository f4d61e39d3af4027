package hub

import (
	"context"
	"slices"
)

// A Part runs while its hub runs.
type Part interface {
	// Start starts the part. If it fails, the part needs no Stop.
	Start(ctx context.Context) error
	// Stop ends the work of the part, and waits for the end.
	Stop()
}

// Parts are started forwards and stopped backwards.
type Parts struct{ started []Part }

// Start starts parts, one after the other. If one fails, those before it run until Stop.
func (p *Parts) Start(ctx context.Context, parts ...Part) error {
	for _, part := range parts {
		if err := part.Start(ctx); err != nil {
			return err
		}
		p.started = append(p.started, part)
	}
	return nil
}

// Stop stops the parts that have started, the last one first.
func (p *Parts) Stop() {
	for _, part := range slices.Backward(p.started) {
		part.Stop()
	}
	p.started = nil
}
