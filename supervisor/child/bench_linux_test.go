package child

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
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
		b.Run(name, func(b *testing.B) { measureStart(b, options, nil) })
	}
}

// BenchmarkStartConfined starts a child that may change one folder, and may not read another. The
// program's own start is in it: a shim confines itself and then becomes the child.
func BenchmarkStartConfined(b *testing.B) {
	work := b.TempDir()
	for name, options := range hosts {
		b.Run(name, func(b *testing.B) {
			measureStart(b, options, &Confinement{Read: []string{"/"}, Write: []string{work}, Hide: []string{"/root/.ssh"}})
		})
	}
}

// measureStart measures the start and the end of one child. It reports the CPU time of both processes, too.
func measureStart(b *testing.B, options Options, confine *Confinement) {
	options.Home = b.TempDir()
	h, err := NewHost(options)
	require.NoError(b, err)
	defer h.Close()
	env := os.Environ()
	var group sync.WaitGroup
	before := busy(b)
	for b.Loop() {
		group.Add(1)
		c, err := h.Start(Spec{
			Command: []string{"cat"}, Dir: "/", Env: env, Run: uuid.NewString(), Confine: confine,
			Listener: counted{group: &group},
		})
		require.NoError(b, err)
		c.CloseStdin()
		group.Wait()
	}
	b.ReportMetric(float64(busy(b)-before)/float64(b.N)/1000, "cpu-us/op")
}

// A counted child is one of a group until it has ended.
type counted struct {
	Nobody
	group *sync.WaitGroup
}

func (c counted) Ended(Ending) { c.group.Done() }

// busy returns the CPU time of this process and of its children that have ended, in nanoseconds.
func busy(b *testing.B) (ns int64) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		require.NoError(b, syscall.Getrusage(who, &r))
		ns += r.Utime.Nano() + r.Stime.Nano()
	}
	return ns
}
