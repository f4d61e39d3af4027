package eventlog

import (
	"encoding/binary"
	"hash/crc32"

	"orchestrator/wire"
)

// castagnoli returns the table of the polynomial that processors support in hardware. It is
// built at the first use, because most commands need none.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// A chain computes the checksums of rows. The sum of a row is the CRC-32C of everything in the
// log up to that row. The length of each field precedes it, so that no two logs have the same
// bytes:
//
//	seq, at, actor_from, actor_to, topic, kind, idempotency_key, correlation,
//	reply_to, payload
//
// Numbers and lengths are 8 bytes, little-endian. NULL counts as empty. The sum before the
// first row is 0.
type chain struct {
	frame []byte // reused
}

// next returns the sum of a row, given the sum of the row before and the text
// of its time.
func (c *chain) next(sum uint32, at []byte, r *wire.Record) uint32 {
	b := number(c.frame[:0], r.Seq)
	b = append(number(b, int64(len(at))), at...)
	b = text(b, r.From)
	b = text(b, r.To)
	b = text(b, r.Topic)
	b = text(b, r.Kind)
	b = text(b, r.Key)
	b = text(b, r.Correlation)
	b = number(b, r.ReplyTo)
	b = number(b, int64(len(r.Payload)))
	c.frame = b
	return crc32.Update(crc32.Update(sum, castagnoli(), b), castagnoli(), r.Payload)
}

// follow returns the sum of a part of a state. The first part continues the sum of the last
// fact that the state includes, so that a state of another log is detected. Each other part
// continues the sum of the part before it.
func follow(sum uint32, part []byte) uint32 {
	return crc32.Update(sum, castagnoli(), part)
}

func number(b []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(b, uint64(n))
}

func text(b []byte, s string) []byte {
	return append(number(b, int64(len(s))), s...)
}
