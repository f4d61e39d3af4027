package eventlog

import (
	"context"
	"fmt"
	"io/fs"
)

// upgrade gives a file of version 1 what version 2 has more. Another program may
// have done it since the file was recognized, so it asks again.
func (l *SQLite) upgrade() error {
	if version, err := ask(l.writer, selectVersion); err != nil || version == schemaVersion {
		return err
	}
	return l.transact("adding the index of all mail", func() error {
		if version, err := ask(l.writer, selectVersion); err != nil || version == schemaVersion {
			return err
		}
		return l.writer.exec(fmt.Sprintf("%s; PRAGMA user_version = %d", lettersIndex, schemaVersion))
	}, func() {})
}

// addressees returns every actor that has mail. In a file of version 1 that was not
// opened for writing since, all mail is what is in all mailboxes.
func (l *SQLite) addressees(ctx context.Context) (all []string, err error) {
	for name, found := "", true; found; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		before := name
		if name, found, err = l.addressee(before); err != nil {
			return nil, err
		}
		if found && name <= before {
			return nil, &ChainError{Seq: 1, What: "the index of mail is out of order"}
		}
		if found {
			all = append(all, name)
		}
	}
	return all, nil
}

// addressee finds the next one with mail in the order of names.
func (l *SQLite) addressee(before string) (name string, found bool, err error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.reader == nil {
		return "", false, fs.ErrClosed
	}
	found, err = first(l.addressed, []value{ofText(before)}, func(row statement) { name = string(row.text(0)) })
	if damaged(err) {
		return "", false, &ChainError{Seq: 1, What: "the index of mail cannot be read", Cause: err}
	}
	return name, found, err
}
