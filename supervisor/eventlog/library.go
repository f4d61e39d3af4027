package eventlog

import (
	"errors"
	"fmt"
)

// A library opens connections of one SQLite implementation for Go. The package links ncruces;
// tests also run modernc for comparison. The two share all SQL and logic, and differ only in
// these interfaces. Package database/sql boxes and copies every value. It would need 1.1 to 1.3
// times the CPU for each appended row, in batches of 1 to 256 without syncs. Boxed columns
// alone cost 2.3 times as much for each row read.
type library func(path string, readOnly bool) (connection, error)

// A connection is used by one goroutine at a time.
type connection interface {
	exec(sql string) error // several statements, no rows
	prepare(sql string) (statement, error)
	persistWAL() error // makes close keep the write-ahead log
	close() error
}

// A statement is a prepared statement. Its errors are *sqlError.
type statement interface {
	run(args []value) error   // runs a statement without rows
	query(args []value) error // positions before the first row
	next() (bool, error)      // moves to the next row
	done() error              // discards the remaining rows
	integer(column int) int64
	text(column int) []byte // of text or blob, valid until the next row
	close() error
}

// A value is one bound value.
type value struct {
	kind  valueKind
	int   int64
	text  string
	bytes []byte
}

// A valueKind selects the field of a value that is used.
type valueKind uint8

const (
	null valueKind = iota
	integer
	stringText
	bytesText
	blob
)

func ofInt(n int64) value { return value{kind: integer, int: n} }

// orNull returns a number, or NULL for 0.
func orNull(n int64) value {
	if n == 0 {
		return value{}
	}
	return ofInt(n)
}

func ofText(s string) value { return value{kind: stringText, text: s} }

// textOrNull returns a text, or NULL for "".
func textOrNull(s string) value {
	if s == "" {
		return value{}
	}
	return ofText(s)
}

// An sqlError is an error of SQLite.
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

// codeOf returns the extended result code of an error, or 0.
func codeOf(err error) int {
	if e, ok := errors.AsType[*sqlError](err); ok {
		return e.code
	}
	return 0
}

// ErrForeign reports that a file is not an SQLite database.
var ErrForeign = errors.New("the file is not a database")

// foreign adds ErrForeign to the error for a file that is not a database.
func foreign(err error) error {
	if codeOf(err)&0xff == codeNotADB {
		return fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return err
}

// damaged reports whether SQLite found the file itself malformed.
func damaged(err error) bool {
	code := codeOf(err) & 0xff
	return code == codeCorrupt || code == codeNotADB
}
