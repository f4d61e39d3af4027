package child

import (
	"os"
)

// ends holds the child's ends of its streams, in the order of its file descriptors.
type ends struct {
	theirs []int // to be closed after the child was started
	stdin  int
	stdout int
	stderr int
}

func (e *ends) files() []uintptr {
	return []uintptr{uintptr(e.stdin), uintptr(e.stdout), uintptr(e.stderr)}
}

// open makes the child's streams and the pumps that read them.
func (c *Child) open() (*ends, error) {
	e := &ends{}
	var err error
	if c.spec.Pty {
		err = c.openPty(e)
	} else {
		err = c.openPipes(e)
	}
	if err == nil {
		var file *os.File
		file, e.stderr, err = pipe("stderr", true)
		if err == nil {
			e.theirs = append(e.theirs, e.stderr)
			c.err, err = newPump(Stderr, file, c.spec.Output)
		}
	}
	if err != nil {
		e.closeAll(c)
		return nil, err
	}
	return e, nil
}

func (c *Child) openStdin(e *ends) error {
	file, theirs, err := pipe("stdin", false)
	if err != nil {
		return err
	}
	e.stdin = theirs
	c.stdin, err = newStdin(file)
	return err
}

func (c *Child) openPipes(e *ends) error {
	var err error
	if c.spec.NoStdin {
		e.stdin, err = null()
	} else {
		err = c.openStdin(e)
	}
	if err != nil {
		return err
	}
	e.theirs = append(e.theirs, e.stdin)
	file, theirs, err := pipe("stdout", true)
	if err != nil {
		return err
	}
	e.stdout = theirs
	e.theirs = append(e.theirs, theirs)
	c.out, err = newPump(Stdout, file, c.spec.Output)
	return err
}

func (e *ends) closeAll(c *Child) {
	closeAll(e.theirs...)
	e.closeOurs(c)
}

func (e *ends) closeOurs(c *Child) {
	c.closeStdin()
	for _, p := range []*pump{c.out, c.err} {
		if p != nil {
			_ = p.file.Close()
		}
	}
}
