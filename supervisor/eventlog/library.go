package eventlog

import (
	"errors"
	"fmt"
)

// library opens connections of one SQLite for Go. The package links ncruces;
// tests bring modernc as a second opinion. Both share every line of SQL and of
// logic, and these few words are all that differs. Going through database/sql
// instead costs 1.1 to 1.3 times the CPU for each row appended (batches of 1,
// 16, 64 and 256, without syncs), because every value is boxed and copied;
// boxed columns alone cost 2.3 times for each row read.
type library func(path string, readOnly bool) (connection, error)

// connection is one connection, of one goroutine at a time.
type connection interface {
	exec(sql string) error // several statements, no rows
	prepare(sql string) (statement, error)
	persistWAL() error // closing shall leave the write-ahead log where it is
	close() error
}

// statement is a prepared statement. What it returns are *sqlError.
type statement interface {
	run(args []value) error   // to its end, for those without rows
	query(args []value) error // before the first row
	next() (bool, error)      // on the next row
	done() error              // gives up the rows that are left
	integer(column int) int64
	text(column int) []byte // of text or blob, valid until the next row
	close() error
}

// value is one bound value.
type value struct {
	kind  valueKind
	int   int64
	text  string
	bytes []byte
}

// valueKind says which field of a value counts.
type valueKind uint8

const (
	null valueKind = iota
	integer
	stringText
	bytesText
	blob
)

func ofInt(n int64) value { return value{kind: integer, int: n} }

// orNull is a number that is NULL when 0.
func orNull(n int64) value {
	if n == 0 {
		return value{}
	}
	return ofInt(n)
}

func ofText(s string) value { return value{kind: stringText, text: s} }

// textOrNull is a text that is NULL when empty.
func textOrNull(s string) value {
	if s == "" {
		return value{}
	}
	return ofText(s)
}

// sqlError is what SQLite says.
type sqlError struct {
	code  int // extended result code
	cause error
}

func (e *sqlError) Error() string { return e.cause.Error() }
func (e *sqlError) Unwrap() error { return e.cause }

// Result codes of SQLite that matter here: https://sqlite.org/rescode.html.
const (
	codeError      = 1
	codeBusy       = 5
	codeNoMemory   = 7
	codeIO         = 10
	codeCorrupt    = 11
	codeFull       = 13
	codeNotADB     = 26
	codePrimaryKey = 19 | 6<<8
	codeUnique     = 19 | 8<<8
	codeRowID      = 19 | 10<<8
)

// codeOf is the extended result code of an error, 0 if it has none.
func codeOf(err error) int {
	if e, ok := errors.AsType[*sqlError](err); ok {
		return e.code
	}
	return 0
}

// ErrForeign reports that a file is not a database of SQLite.
var ErrForeign = errors.New("the file is not a database")

// foreign names the error of a file that is not a database.
func foreign(err error) error {
	if codeOf(err)&0xff == codeNotADB {
		return fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return err
}

// damaged tells whether SQLite found the file itself out of order.
func damaged(err error) bool {
	code := codeOf(err) & 0xff
	return code == codeCorrupt || code == codeNotADB
}
