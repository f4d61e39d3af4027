package eventlog

import (
	"context"
	"fmt"
	"io/fs"
)

// upgrade converts a file of version 1 to version 2. It checks the version again in its
// transaction, because another program may have converted the file.
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

// addressees returns every actor that has mail. A file of version 1 has no index of all mail,
// so a search merges the mailboxes of these actors.
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

// addressee returns the next actor with mail, in the order of names.
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
