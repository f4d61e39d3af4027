package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Limits of connections. A session of a hub that was cut off keeps its lock until the server notices that. With the
// settings of setUp, that takes seconds and not hours. A connection that was given up may take 15 s to be closed, and
// until then a question needs another one.
const (
	connectPatience = 3 * time.Second
	maxConnections  = 24
)

// errUnsafe reports that the server could lose confirmed entries.
var errUnsafe = errors.New("it may lose what it has confirmed")

// connect makes a pool of connections. It does not wait for the server.
func (e *Engine) connect() error {
	c, err := pgxpool.ParseConfig(e.options.URL)
	if err != nil {
		return err
	}
	if e.options.Credentials != "" {
		c.ConnConfig.Password = e.options.Credentials
	}
	if c.ConnConfig.RuntimeParams["application_name"] == "" {
		c.ConnConfig.RuntimeParams["application_name"] = "orchestrator " + e.options.Node
	}
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = connectPatience
	}
	severed, sever := context.WithCancel(context.Background())
	e.sever, e.address = sever, addressOf(&c.ConnConfig.Config)
	c.ConnConfig.DialFunc = dialer(severed)
	c.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	c.ConnConfig.OnNotice = noteWarning
	c.AfterConnect = setUp
	c.MaxConns, c.MinIdleConns, c.PingTimeout = maxConnections, 1, patience
	c.MaxConnIdleTime, c.HealthCheckPeriod = time.Minute, 15*time.Second
	e.pool, err = pgxpool.NewWithConfig(context.Background(), c)
	return err
}

// A severable is a connection that is closed when a context ends.
type severable struct {
	net.Conn
	forget func() bool
}

func (s severable) Close() error {
	s.forget()
	return s.Conn.Close()
}

// dialer returns a function that opens connections. They are closed when severed ends.
func dialer(severed context.Context) pgconn.DialFunc {
	d := net.Dialer{
		Timeout: connectPatience, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3},
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(severed, cancel)()
		c, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return severable{Conn: c, forget: context.AfterFunc(severed, func() { _ = c.Close() })}, nil
	}
}

// setUp sets parameters for the statements of a session, and refuses a server that is not safe.
func setUp(ctx context.Context, c *pgx.Conn) error {
	var fsync, wholePages string
	err := c.QueryRow(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes') FROM (SELECT
		set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false),
		set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false),
		set_config('tcp_keepalives_idle', '1', false), set_config('tcp_keepalives_interval', '1', false),
		set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '4000', false)) AS settings`,
		pgx.QueryExecModeSimpleProtocol).Scan(&fsync, &wholePages)
	switch {
	case err != nil:
		return err
	case fsync != "on":
		return fmt.Errorf("%w: its setting fsync is %s", errUnsafe, fsync)
	case wholePages != "on":
		return fmt.Errorf("%w: its setting full_page_writes is %s", errUnsafe, wholePages)
	}
	return nil
}

// warned is the name of the mark of a connection after a warning of the server.
const warned = "warned"

// noteWarning marks a connection after a warning of the server. The server warns if it stops waiting for its replica.
func noteWarning(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		c.CustomData()[warned] = true
	}
}
