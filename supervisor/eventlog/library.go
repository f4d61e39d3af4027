package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"syscall"

	"github.com/ncruces/go-sqlite3"
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

// memory is the address space that each connection may use. It is taken from the machine as
// needed, and kept. SQLite needs about three times the longest text, and sometimes more because
// of fragmentation.
const memory = 1 << 30

// leastMemory is the memory that a connection needs for the longest fact.
const leastMemory = 128 << 20

// ncruces opens connections of the linked library: SQLite compiled to Go, without cgo. If the
// address space of the process is limited, it takes less memory.
func ncruces(path string, readOnly bool) (connection, error) { return onVFS("")(path, readOnly) }

// onVFS is ncruces on a file system that is known by a name.
func onVFS(name string) library {
	return func(path string, readOnly bool) (connection, error) {
		room := roomOf(addressSpace())
		c, err := openWith(path, name, readOnly, room)
		for room /= 2; errors.Is(err, syscall.ENOMEM) && room >= leastMemory; room /= 2 {
			c, err = openWith(path, name, readOnly, room)
		}
		return c, err
	}
}

// roomOf returns the memory for a connection of a process that may use so much address space. There
// are two connections, and threads and the garbage collector need the most: of a program with cgo
// each thread takes 72 MiB.
func roomOf(addressSpace uint64) int64 {
	return int64(max(leastMemory, min(memory, addressSpace/16)))
}

// addressSpace returns how much address space the process may use.
func addressSpace() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &limit) != nil {
		return math.MaxUint64
	}
	return limit.Cur
}

// openWith opens a connection that may use room bytes of memory.
func openWith(path, vfs string, readOnly bool, room int64) (c connection, err error) {
	defer func() {
		if p := recover(); p != nil { // SQLite in Go panics without memory
			cause, ok := p.(error)
			if !ok {
				cause = fmt.Errorf("panic: %v", p)
			}
			c, err = nil, &sqlError{code: codeNoMemory, cause: cause}
		}
	}()
	mode := "rw"
	if readOnly {
		mode = "ro"
	}
	query := "mode=" + mode
	if vfs != "" {
		query += "&vfs=" + url.PathEscape(vfs)
	}
	name := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: query}
	conn, err := sqlite3.OpenContext(sqlite3.WithMaxMemory(context.Background(), room), name.String())
	if err != nil {
		return nil, fromNcruces(err)
	}
	// Without this, SQLite plans a query again whenever a bound number differs from the one
	// before. That takes twice as long as reading a row.
	if _, err := conn.Config(sqlite3.DBCONFIG_ENABLE_QPSG, true); err != nil {
		return nil, errors.Join(fromNcruces(err), conn.Close())
	}
	return ncrucesConn{conn}, nil
}

type ncrucesConn struct{ *sqlite3.Conn }

func (c ncrucesConn) exec(sql string) error { return fromNcruces(c.Exec(sql)) }
func (c ncrucesConn) close() error          { return fromNcruces(c.Close()) }

func (c ncrucesConn) persistWAL() error {
	_, err := c.FileControl("main", sqlite3.FCNTL_PERSIST_WAL, true)
	return fromNcruces(err)
}

func (c ncrucesConn) prepare(sql string) (statement, error) {
	stmt, _, err := c.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, fromNcruces(err)
	}
	return ncrucesStmt{stmt}, nil
}

type ncrucesStmt struct{ *sqlite3.Stmt }

func (s ncrucesStmt) bind(args []value) error {
	for i := range args {
		var err error
		switch a := &args[i]; a.kind {
		case null:
			err = s.BindNull(i + 1)
		case integer:
			err = s.BindInt64(i+1, a.int)
		case stringText:
			err = s.BindText(i+1, a.text)
		case bytesText:
			err = s.BindRawText(i+1, a.bytes)
		case blob:
			err = s.BindBlob(i+1, a.bytes)
		}
		if err != nil {
			return fromNcruces(err)
		}
	}
	return nil
}

func (s ncrucesStmt) run(args []value) error {
	if err := s.bind(args); err != nil {
		return err
	}
	err := s.Exec()
	if large(args) {
		err = errors.Join(err, s.ClearBindings()) // release the values before the next row
	}
	return fromNcruces(err)
}

// large reports whether values are too large to be kept in memory between rows.
func large(args []value) bool {
	size := 0
	for i := range args {
		size += len(args[i].text) + len(args[i].bytes)
	}
	return size > 1<<20
}

func (s ncrucesStmt) query(args []value) error { return s.bind(args) }

func (s ncrucesStmt) next() (bool, error) {
	if s.Step() {
		return true, nil
	}
	return false, fromNcruces(s.Err())
}

func (s ncrucesStmt) done() error              { return fromNcruces(s.Reset()) }
func (s ncrucesStmt) integer(column int) int64 { return s.ColumnInt64(column) }
func (s ncrucesStmt) text(column int) []byte   { return s.ColumnRawBlob(column) }
func (s ncrucesStmt) close() error             { return fromNcruces(s.Close()) }

func fromNcruces(err error) error {
	if err == nil {
		return nil
	}
	var code sqlite3.ExtendedErrorCode
	errors.As(err, &code)
	return &sqlError{code: int(code), cause: err}
}
