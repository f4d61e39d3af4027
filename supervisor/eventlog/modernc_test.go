package eventlog

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"strconv"

	"modernc.org/sqlite"
)

// modernc opens the log with another translation of SQLite into Go, as a second opinion. The
// program does not link it.
func modernc(path string, readOnly bool) (connection, error) {
	mode := "rw"
	if readOnly {
		mode = "ro"
	}
	conn, err := (&sqlite.Driver{}).Open("file:" + path + "?mode=" + mode)
	if err != nil {
		return nil, fromModernc(err)
	}
	return moderncConn{conn}, nil
}

type moderncConn struct{ driver.Conn }

func (c moderncConn) exec(sql string) error {
	_, err := c.Conn.(driver.ExecerContext).ExecContext(context.Background(), sql, nil)
	return fromModernc(err)
}

func (c moderncConn) persistWAL() error {
	_, err := c.Conn.(sqlite.FileControl).FileControlPersistWAL("main", 1)
	return fromModernc(err)
}

func (c moderncConn) close() error { return fromModernc(c.Close()) }

func (c moderncConn) prepare(sql string) (statement, error) {
	stmt, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(context.Background(), sql)
	if err != nil {
		return nil, fromModernc(err)
	}
	return &moderncStmt{Stmt: stmt}, nil
}

type moderncStmt struct {
	driver.Stmt
	rows driver.Rows
	row  []driver.Value
}

func named(args []value) []driver.NamedValue {
	all := make([]driver.NamedValue, len(args))
	for i, a := range args {
		all[i].Ordinal = i + 1
		switch a.kind {
		case integer:
			all[i].Value = a.int
		case stringText:
			all[i].Value = a.text
		case bytesText:
			all[i].Value = string(a.bytes)
		case blob:
			all[i].Value = append([]byte{}, a.bytes...)
		}
	}
	return all
}

func (s *moderncStmt) run(args []value) error {
	_, err := s.Stmt.(driver.StmtExecContext).ExecContext(context.Background(), named(args))
	return fromModernc(err)
}

func (s *moderncStmt) query(args []value) (err error) {
	s.rows, err = s.Stmt.(driver.StmtQueryContext).QueryContext(context.Background(), named(args))
	if err == nil {
		s.row = make([]driver.Value, len(s.rows.Columns()))
	}
	return fromModernc(err)
}

func (s *moderncStmt) next() (bool, error) {
	err := s.rows.Next(s.row)
	if err == io.EOF {
		return false, nil
	}
	return err == nil, fromModernc(err)
}

func (s *moderncStmt) done() error {
	if s.rows == nil {
		return nil
	}
	rows := s.rows
	s.rows = nil
	return fromModernc(rows.Close())
}

func (s *moderncStmt) integer(column int) int64 {
	n, _ := s.row[column].(int64)
	return n
}

func (s *moderncStmt) text(column int) []byte {
	switch v := s.row[column].(type) {
	case string:
		return []byte(v)
	case []byte:
		return v
	case int64:
		return strconv.AppendInt(nil, v, 10)
	}
	return nil
}

func (s *moderncStmt) close() error { return fromModernc(s.Close()) }

func fromModernc(err error) error {
	if err == nil {
		return nil
	}
	e := &sqlError{cause: err}
	if said, ok := errors.AsType[*sqlite.Error](err); ok {
		e.code = said.Code()
	}
	return e
}
