package term

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A disk accepts a number of bytes and then fails.
type disk struct {
	bytes.Buffer
	room int
	err  error
}

func (d *disk) Write(text []byte) (int, error) {
	fits := text[:min(len(text), d.room)]
	d.room -= len(fits)
	n, _ := d.Buffer.Write(fits)
	if n < len(text) {
		return n, d.err
	}
	return n, nil
}

// heardOutlet returns an outlet to a disk, and the list of its reports.
func heardOutlet(d *disk) (o *Outlet, told *[]string) {
	told = new([]string)
	return &Outlet{
		To:           d,
		Note:         func(missing int64) []byte { return fmt.Appendf(nil, "(%d missing)\n", missing) },
		OnError:      func(err error) { *told = append(*told, err.Error()) },
		OnReaderGone: func() { *told = append(*told, "gone") },
	}, told
}

func (o *Outlet) say(text string) {
	o.WriteString(text)
	o.Flush()
}

// A full disk loses the lines written while it is full, and reports it.
func TestOutletOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: 8, err: syscall.ENOSPC}
		o, told := heardOutlet(d)
		o.say("one\n")
		o.say("two\nthree\n")
		require.Equal(t, []string{"no space left on device"}, *told)
		d.room = 1000
		o.say("four\n")
		require.Equal(t, "one\ntwo\n", d.String(), "it is left alone for a while")
		<-time.After(outletRetry)
		o.say("five\n")
		require.Equal(t, "one\ntwo\n(2 missing)\nfive\n", d.String())

		d.room = 2 // room for half a line
		o.say("six\n")
		<-time.After(outletRetry)
		o.say("seven\n")
		require.Len(t, *told, 2, "each trouble is told once")
		d.room = 1000
		require.Zero(t, o.Close(), "the last try does not wait")
		require.Equal(t, "one\ntwo\n(2 missing)\nfive\nsi\n(2 missing)\n", d.String())
	})
}

func TestOutletOnFullDiskUntilTheEnd(t *testing.T) {
	d := &disk{err: syscall.ENOSPC}
	o, told := heardOutlet(d)
	o.say("one\ntwo\n")
	o.WriteString("three\n")
	require.EqualValues(t, 3, o.Close())
	require.Equal(t, []string{"no space left on device"}, *told)
	require.Empty(t, d.String())
}

// Only the loss of its reader ends an outlet.
func TestOutletWithoutReader(t *testing.T) {
	o, told := heardOutlet(&disk{err: fmt.Errorf("write: %w", syscall.EPIPE)})
	o.say("one\n")
	o.say("two\n")
	require.Zero(t, o.Close())
	require.Equal(t, []string{"gone"}, *told)

	for _, err := range []error{syscall.ENOSPC, syscall.EIO, syscall.EFBIG, errors.New("anything")} {
		require.False(t, ReaderGone(err, false), err)
	}
	require.True(t, ReaderGone(syscall.EIO, true), "a terminal that was hung up")
	require.False(t, ReaderGone(syscall.ENOSPC, true))
}
