package child

import (
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// BenchmarkStartExec is the floor: the standard library with three pipes, without a watch.
func BenchmarkStartExec(b *testing.B) {
	for b.Loop() {
		cmd := exec.Command("cat")
		stdin, err := cmd.StdinPipe()
		require.NoError(b, err)
		_, err = cmd.StdoutPipe()
		require.NoError(b, err)
		_, err = cmd.StderrPipe()
		require.NoError(b, err)
		require.NoError(b, cmd.Start())
		_ = stdin.Close()
		_ = cmd.Wait()
	}
}

func BenchmarkStart(b *testing.B) {
	for name, options := range hosts {
		b.Run(name, func(b *testing.B) {
			options.Home = b.TempDir()
			h, err := NewHost(options)
			require.NoError(b, err)
			defer h.Close()
			env := os.Environ()
			var group sync.WaitGroup
			for b.Loop() {
				group.Add(1)
				c, err := h.Start(Spec{
					Command: []string{"cat"}, Dir: "/", Env: env, Run: uuid.NewString(),
					Output: func(Stream, []byte) {},
					Exited: func(Exit) {},
					Ended:  func(Ending) { group.Done() },
				})
				require.NoError(b, err)
				c.CloseStdin()
				group.Wait()
			}
		})
	}
}
