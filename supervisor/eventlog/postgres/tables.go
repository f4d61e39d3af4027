package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"
)

// makeTables runs as one transaction. The columns of orchestrator_logs after key are the seat.
const makeTables = `
CREATE TABLE IF NOT EXISTS orchestrator_entries (
	log   text   NOT NULL,
	n     bigint NOT NULL CHECK (n > 0),
	id    bytea  NOT NULL,
	entry bytea  NOT NULL,
	PRIMARY KEY (log, n)
);
CREATE TABLE IF NOT EXISTS orchestrator_logs (
	log    text   NOT NULL PRIMARY KEY,
	key    bytea  NOT NULL,
	beat   bigint NOT NULL DEFAULT 0,
	hub    bytea,       -- the id of the engine, or NULL: no hub serves
	who    bytea,       -- what the hub says of itself
	at     bigint,      -- the entry with which it took its turn
	pid    integer,     -- the process of its session
	server timestamptz  -- when the server of that session was started
);
CREATE FUNCTION orchestrator_keep() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'entries of the log of an orchestrator are never changed or deleted'; END $$;
CREATE TRIGGER orchestrator_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON orchestrator_entries
	FOR EACH STATEMENT EXECUTE FUNCTION orchestrator_keep();
`

// makeObjects runs as one transaction. Databases of older versions do not have the table.
const makeObjects = `
CREATE TABLE IF NOT EXISTS orchestrator_objects (
	log     text  NOT NULL,
	hash    text  NOT NULL,
	content bytea NOT NULL,
	PRIMARY KEY (log, hash)
);
CREATE OR REPLACE FUNCTION orchestrator_keep() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'entries of the log of an orchestrator are never changed or deleted'; END $$;
CREATE TRIGGER orchestrator_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON orchestrator_objects
	FOR EACH STATEMENT EXECUTE FUNCTION orchestrator_keep();
`

// raced reports whether a refusal means that another hub is making the same tables.
func raced(code string) bool {
	return slices.Contains([]string{
		"23505", // unique_violation, in a table of the server
		"42P07", // duplicate_table
		"42710", // duplicate_object
		"42723", // duplicate_function
	}, code)
}

// prepare makes the tables of the log on the server. If the tables exist, the role of the hub needs no right to make
// them.
func (e *Engine) prepare(ctx context.Context) error {
	return e.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		var there, objects bool
		err := c.QueryRow(ctx, `SELECT to_regclass('orchestrator_entries') IS NOT NULL AND to_regclass('orchestrator_logs') IS NOT NULL,
			to_regclass('orchestrator_objects') IS NOT NULL`).Scan(&there, &objects)
		if err == nil && !there {
			_, err = c.Conn().PgConn().Exec(ctx, makeTables).ReadAll()
		}
		if err == nil && !objects {
			_, err = c.Conn().PgConn().Exec(ctx, makeObjects).ReadAll()
		}
		if err == nil {
			err = examine(ctx, c)
		}
		if err != nil {
			return err
		}
		key := make([]byte, 32)
		_, _ = rand.Read(key) // it never fails
		if _, err := c.Exec(ctx, `INSERT INTO orchestrator_logs (log, key) VALUES ($1, $2) ON CONFLICT DO NOTHING`, e.options.Log, key); err != nil {
			return err
		}
		return c.QueryRow(ctx, `SELECT key FROM orchestrator_logs WHERE log = $1`, e.options.Log).Scan(&e.key)
	})
}

// errRole reports that a hub could write no entries, or could not say that it is at work.
var errRole = errors.New("its role needs INSERT on orchestrator_entries and orchestrator_objects, and INSERT and UPDATE on orchestrator_logs")

// examine returns an error if the table could lose entries or have two with one number, or if this hub may not
// write to it.
func examine(ctx context.Context, c *pgxpool.Conn) error {
	var logged, unique, kept, may bool
	err := c.QueryRow(ctx, `SELECT relpersistence = 'p',
		EXISTS (SELECT FROM pg_constraint WHERE conrelid = t.oid AND pg_get_constraintdef(oid) = 'PRIMARY KEY (log, n)'),
		EXISTS (SELECT FROM pg_trigger WHERE tgrelid = t.oid AND tgname = 'orchestrator_keep' AND tgenabled <> 'D'),
		has_table_privilege(oid, 'INSERT') AND has_table_privilege('orchestrator_objects', 'INSERT') AND has_table_privilege('orchestrator_logs', 'INSERT') AND has_table_privilege('orchestrator_logs', 'UPDATE')
		FROM pg_class AS t WHERE oid = to_regclass('orchestrator_entries')`).Scan(&logged, &unique, &kept, &may)
	switch {
	case err != nil:
		return err
	case !logged:
		return fmt.Errorf("%w: its table orchestrator_entries is unlogged", errUnsafe)
	case !unique:
		return fmt.Errorf("%w: the primary key of its table orchestrator_entries is not (log, n)", errUnsafe)
	case !kept:
		return fmt.Errorf("%w: its table orchestrator_entries has no trigger orchestrator_keep", errUnsafe)
	case !may:
		return errRole
	}
	return nil
}
