package child

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/uuid"
)

// maxAnswer bounds what Run keeps of a command's output.
const maxAnswer = 1 << 20

// Run runs a command to its end and returns what it printed on stdout. It is
// for short commands with an answer; their tree is ended like any child's, and
// at the end of ctx it is killed. What they print on stderr is not kept:
// programs that know secrets print them there, too.
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
