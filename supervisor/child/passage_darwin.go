package child

import "syscall"

// A passage is only for Linux. Here the thread that forks shares the file descriptors of the process.
type passage struct{}

func newPassage() *passage { return new(passage) }

func (*passage) settle() {}

func (*passage) close() {}

func (*passage) ask(f fork, to chan<- fork) error {
	to <- f
	return nil
}

func (*passage) fork(f *fork) (pid int, err error) {
	pid, _, err = syscall.StartProcess(f.path, f.argv, f.attr)
	return pid, err
}

func (*passage) keep([]int) error { return nil }

func (*passage) exec(f *fork) error { return syscall.Exec(f.path, f.argv, f.attr.Env) }
