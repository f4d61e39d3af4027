package child

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/uuid"
)

// maxAnswer is the most output of a command that Run keeps, in bytes.
const maxAnswer = 1 << 20

// Run runs a command and returns its stdout. It is for short commands. Their tree is ended like
// that of any child, and killed when ctx is done. Their stderr is discarded, because programs
// that know secrets print them there, too.
func (h *Host) Run(ctx context.Context, command []string, dir string, env []string) ([]byte, error) {
	var out bytes.Buffer
	tooLong := false
	exited, ended := make(chan Exit, 1), make(chan struct{})
	c, err := h.Start(Spec{
		Command: command,
		Dir:     dir,
		Env:     env,
		Run:     uuid.NewString(),
		NoStdin: true,
		Output: func(stream Stream, chunk []byte) {
			if stream == Stdout {
				tooLong = tooLong || out.Len()+len(chunk) > maxAnswer
				if !tooLong {
					out.Write(chunk)
				}
			}
		},
		Exited: func(e Exit) { exited <- e },
		Ended:  func(Ending) { close(ended) },
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-ended:
	case <-ctx.Done():
		c.Kill()
		<-ended
		return nil, context.Cause(ctx)
	}
	exit := <-exited
	switch {
	case exit.Signal != 0 || exit.Code != 0:
		return nil, fmt.Errorf("it ended with %s", exit)
	case tooLong:
		return nil, fmt.Errorf("it printed more than %d bytes", maxAnswer)
	}
	return out.Bytes(), nil
}
