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

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                     "0.0s",
		430 * time.Millisecond:                "0.4s",
		31 * time.Second:                      "31s",
		4*time.Minute + 2*time.Second:         "4m02s",
		5 * time.Minute:                       "5m",
		12*time.Minute + 10*time.Second:       "12m",
		62 * time.Minute:                      "1h02m",
		49*time.Hour + 20*time.Minute:         "2d01h",
		-time.Second:                          "-",
		59*time.Second + 900*time.Millisecond: "59s",
	} {
		require.Equal(t, want, Duration(d), d.String())
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 999: "999B", 4200: "4.1K", 32505856: "31M", 1288490188: "1.2G", 1023 << 20: "1.0G"} {
		require.Equal(t, want, Bytes(n))
	}
}

// Text is cut at the width of the terminal, never inside a character.
func TestClip(t *testing.T) {
	require.Equal(t, "short", Clip("short", 5))
	require.Equal(t, "shor…", Clip("shorter", 5))
	require.Equal(t, "写…", Clip("写手写手", 4))
	require.Equal(t, "写手  ", Pad("写手", 6))
}

// Untrusted text is escaped and put on one line.
func TestOneLine(t *testing.T) {
	require.NotContains(t, OneLine("a\n\x1b[2J\u202eb"), "\x1b")
	require.Equal(t, "a b", OneLine(" a\n\tb "))
}

// A bar has its fixed length for any progress.
func TestBar(t *testing.T) {
	for progress, want := range map[float64]string{-1: "-----", 0: "-----", 0.5: "###--", 1: "#####", 7: "#####"} {
		require.Equal(t, want, Bar(progress, 5))
	}
}

// Columns are aligned also for wide, zero-width and colored characters.
func TestTable(t *testing.T) {
	rows := [][]Cell{
		{Text("A"), Figure("N"), Text("z")},
		{{Text: "写手", Ink: Paint(true).Good}, Figure("12"), Text("")},
		{Text("e\u0301a"), Figure("7"), Text("y")},
	}
	require.Equal(t, "A      N  z\n\x1b[32m写手\x1b[0m  12\ne\u0301a     7  y\n", Table(rows))
}

func TestReadable(t *testing.T) {
	page := "# Title\n\nSome `code` and **weight**\nthat goes on.\n\n| A | B |\n|---|---|\n| `a \\| b` | long text here |\n\n- one\n  two\n- three\n\n1. a long item\n   that goes on\n2. five\n\n```\n  kept   as is\n```\n"
	require.Equal(t, `TITLE

Some code and weight
that goes on.

  a | b
    B: long text
      here

- one two
- three

1. a long item that
   goes on
2. five

      kept   as is
`, Readable(page, false, 20), "a table that is too wide is read row by row")
	require.Contains(t, Readable(page, false, 60), "\n  A      B\n  a | b  long text here\n")
}

func TestNumberedItemsKeepTheirLines(t *testing.T) {
	require.Equal(t, "1. one two\n   three\n10. four\n", Readable("1. one\n   two three\n10. four\n", false, 12))
}

// Comments at the end of wide lines of samples go above them.
func TestCommentsFitTheScreen(t *testing.T) {
	const sample = "```\na {\n  b = \"x # y\"   # short\n  c = [1, 2]    # a comment that is too long for it\n  d = \"a long text # with a mark\"\n# a comment that has a whole line alone\nrun \\\n  it # with a comment that stays\n}\n```\n"
	require.Equal(t, `    a {
      b = "x # y"   # short
      # a comment that is too
      # long for it
      c = [1, 2]
      d = "a long text # with a mark"
    # a comment that has a whole line alone
    run \
      it # with a comment that stays
    }
`, Readable(sample, false, 30))
	require.Contains(t, Readable(sample, false, 60), "      c = [1, 2]    # a comment that is too long for it\n")
}

// A table is shown in columns if all have enough room, and otherwise as lists.
func TestTablesFitTheScreen(t *testing.T) {
	const table = "| Code | Problem | Fix |\n|---|---|---|\n| `one` | the value is not a number | mend it by hand, slowly |\n| `two` | | look |\n"
	require.Equal(t, ""+
		"  Code  Problem                    Fix\n"+
		"  one   the value is not a number  mend it by hand, slowly\n"+
		"  two                              look\n", Readable(table, false, 60))
	require.Equal(t, ""+
		"  Code  Problem            Fix\n"+
		"  one   the value is not   mend it by hand,\n"+
		"        a number           slowly\n"+
		"  two                      look\n", Readable(table, false, 43))
	require.Equal(t, ""+
		"  one\n"+
		"    Problem: the value is not\n"+
		"      a number\n"+
		"    Fix: mend it by hand,\n"+
		"      slowly\n"+
		"  two\n"+
		"    Fix: look\n", Readable(table, false, 30))
	require.Equal(t, "  Name of the part  Use\n  the first of all  a\n   the parts\n",
		Readable("| Name of the part | Use |\n|---|---|\n| the first of all the parts | a |\n", false, 23), "further lines of the first column are indented")
}

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

func TestFirstAndLast(t *testing.T) {
	first, last := FirstAndLast("sh test.sh: exit 1\none\ntwo\n\nthree\r\nfo\x1bur\n")
	require.Equal(t, "sh test.sh: exit 1", first)
	require.Equal(t, []string{"two", "three", `fo\x1bur`}, last)
	first, last = FirstAndLast("alone")
	require.Equal(t, "alone", first)
	require.Empty(t, last)
}
