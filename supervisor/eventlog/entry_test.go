package eventlog

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// sample is an entry with a small batch.
func sample() Entry {
	return Entry{First: 8, Count: 2, Part: 1, Of: 3, Before: 1 << 31, Body: appendBatch(nil, facts(7, 2))}
}

// sealed returns a text with a right format and checksum, so that the rest is read.
func sealed(text []byte) []byte {
	text = bytes.Clone(text)
	if len(text) >= entryHead {
		text[0] = entryFormat + text[0]%2
		binary.LittleEndian.PutUint32(text[1:], crc32.Checksum(text[entryHead:], castagnoli()))
	}
	return text
}

// FuzzEntry checks that a valid entry comes back as it was, that no other is read, and that an
// entry fits into a request to an engine.
func FuzzEntry(f *testing.F) {
	f.Add(int64(1), 1, 1, 1, uint32(0), "", []byte{})
	f.Add(int64(1), 0, 1, 1, uint32(0), "h1:7434", []byte{})
	f.Add(int64(1), 0, 1, 1, uint32(0), "", []byte{})
	f.Add(int64(math.MaxInt64), math.MaxInt, math.MaxInt, math.MaxInt, uint32(math.MaxUint32), "h1", []byte("body"))
	f.Add(int64(-1), 0, 2, 1, uint32(7), "", []byte("\xff"))
	f.Add(int64(1), 0, 1, 1, uint32(7), "", []byte("\xff"))
	f.Fuzz(func(t *testing.T, first int64, count, part, of int, before uint32, owner string, body []byte) {
		e := Entry{First: first, Count: count, Part: part, Of: of, Before: before, Owner: owner, Body: body}
		text := e.Append([]byte("before"))
		text, found := bytes.CutPrefix(text, []byte("before"))
		require.True(t, found)
		require.LessOrEqual(t, len(text), entryRoom+len(owner)+len(body))
		read, err := ReadEntry(text)
		if first < 1 || count < 0 || count == 0 && (of != 1 || len(body) > 0) || part < 1 || part > of {
			require.ErrorContains(t, err, "makes no sense")
			return
		}
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, read.Body))
		read.Body = e.Body
		require.Equal(t, e, read)
	})
}

// FuzzGarbage checks that garbage is read without a panic and without much memory, as an entry and
// as a batch, and that accepted bytes mean the same when they are written again.
func FuzzGarbage(f *testing.F) {
	e := sample()
	f.Add(e.Append(nil), uint16(2))
	owned := e
	owned.Owner = "h1:7434"
	f.Add(owned.Append(nil), uint16(2))
	f.Add(e.Body, uint16(2))
	f.Add(bytes.Repeat([]byte{0}, 90), uint16(10))
	f.Add(bytes.Repeat([]byte{0xff}, 90), uint16(10))
	f.Add(appendBatch(nil, everyField()), uint16(1))
	f.Fuzz(func(t *testing.T, text []byte, n uint16) {
		for _, text := range [][]byte{text, sealed(text)} {
			if e, err := ReadEntry(text); err == nil {
				again, err := ReadEntry(e.Append(nil))
				require.NoError(t, err)
				require.Equal(t, e, again)
				checkBatch(t, e.Body, e.First-1, e.Count)
			}
		}
		checkBatch(t, text, 0, int(n))
	})
}

// checkBatch reads a batch and, if it is accepted, writes and reads it again.
func checkBatch(t *testing.T, text []byte, last int64, n int) {
	batch, err := readBatch(text, last, n)
	if err != nil {
		return
	}
	require.Len(t, batch, n)
	require.LessOrEqual(t, 9*n, len(text), "bytes of a fact")
	again, err := readBatch(appendBatch(nil, batch), last, n)
	require.NoError(t, err)
	require.Equal(t, batch, again)
}

// TestEntryFlipped checks that a flipped bit anywhere in an entry is refused, and so is an entry
// that was cut off or has bytes after it.
func TestEntryFlipped(t *testing.T) {
	e := sample()
	text := e.Append(nil)
	for bit := range 8 * len(text) {
		flipped := bytes.Clone(text)
		flipped[bit/8] ^= 1 << (bit % 8)
		_, err := ReadEntry(flipped)
		require.Error(t, err, "bit %d", bit)
	}
	for size := range text {
		_, err := ReadEntry(text[:size])
		require.Error(t, err, "%d bytes", size)
	}
	_, err := ReadEntry(append(text, 0))
	require.Error(t, err)
	text[0] = ownedFormat + 1
	_, err = ReadEntry(text)
	require.ErrorContains(t, err, "was it written by a newer version?")
}

// TestEntryOfGarbage checks that numbers that promise more than there is need no memory.
func TestEntryOfGarbage(t *testing.T) {
	huge := Entry{First: 1, Count: math.MaxInt, Part: math.MaxInt, Of: math.MaxInt, Body: make([]byte, 100)}
	text := huge.Append(nil)
	long := binary.AppendUvarint([]byte{0}, math.MaxInt64) // a time, and the length of a name
	longer := binary.AppendUvarint([]byte{0}, math.MaxUint64)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 10 {
		e, err := ReadEntry(text)
		require.NoError(t, err)
		_, err = readBatch(e.Body, 0, e.Count)
		require.ErrorContains(t, err, "shorter than its entry says")
		for _, text := range [][]byte{long, longer, bytes.Repeat([]byte{0x80}, 50)} {
			_, err = readBatch(append(text, make([]byte, 50)...), 0, 1)
			require.Error(t, err)
		}
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
}

// everyField returns a fact without a zero field.
func everyField() []wire.Record {
	return []wire.Record{{
		At: noon, From: "from", To: "to", Topic: "topic", Kind: "kind", Payload: []byte("payload"),
		ReplyTo: 7, Key: "key", Correlation: "correlation",
	}}
}

// TestBatchText checks that each field of a fact is in the text of a batch, also at its limits, and
// that a batch and its copy have the same checksum.
func TestBatchText(t *testing.T) {
	batch := numbered(4, everyField())
	value := reflect.ValueOf(batch[0])
	for i := range value.NumField() {
		require.False(t, value.Field(i).IsZero(), "the test does not set %s", value.Type().Field(i).Name)
	}
	at := func(year int) time.Time { return time.Date(year, 12, 31, 23, 59, 59, 999_999_999, time.UTC) }
	batch = append(batch, numbered(5, []wire.Record{
		{At: at(0)}, {At: at(1969)}, {At: at(9999)}, {ReplyTo: math.MaxInt64}, {ReplyTo: -1}, {At: noon.In(time.FixedZone("", 3600)), Payload: []byte{}},
	})...)
	read, err := readBatch(appendBatch(nil, batch), 4, len(batch))
	require.NoError(t, err)
	require.Equal(t, batch, read)

	l := mustOpen(t, Options{Path: t.TempDir() + "/events.db"})
	require.NoError(t, l.Append(t.Context(), 0, facts(0, 4)))
	before := l.sum
	require.NoError(t, l.Append(t.Context(), 4, batch))
	require.Equal(t, l.sum, sumOf(before, read))
}
