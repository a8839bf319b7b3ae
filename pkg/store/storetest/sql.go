package storetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"arizuko/pkg/store"
)

// OpenSQL opens a database, a file or one on a server, as a program of others would. Statements are in SQLite's words,
// also for a server: there they are translated, and flags are read as 0 and 1.
func OpenSQL(database string) (*sql.DB, error) {
	if !store.IsServer(database) {
		return sql.Open("sqlite3", "file:"+database+"?mode=rw&_busy_timeout=20000&_txlock=immediate&_foreign_keys=true")
	}
	config, err := pgx.ParseConfig(database)
	if err != nil {
		return nil, err
	}
	// Texts may stand for numbers, as in SQLite.
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	return sql.OpenDB(connector{stdlib.GetConnector(*config)}), nil
}

// connector connects to a server.
type connector struct{ driver.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{conn.(*stdlib.Conn)}, nil
}

// connection translates statements.
type connection struct{ *stdlib.Conn }

// jsonField is a field of a JSON text: m.forwarded_from ->> 'kind', or '$[0].name'.
var jsonField = regexp.MustCompile(`([\w.]+) ->> '(\$)?([^']*)'`)

func translate(query string) string {
	query = jsonField.ReplaceAllStringFunc(query, func(field string) string {
		m := jsonField.FindStringSubmatch(field)
		path := m[3]
		if m[2] != "" {
			path = strings.Trim(strings.NewReplacer("[", ",", "]", "", ".", ",").Replace(path), ",")
		}
		return "(" + m[1] + "::json #>> '{" + path + "}')"
	})
	return store.Translate(strings.ReplaceAll(query, "instr(", "strpos("))
}

func (c *connection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.QueryContext(ctx, translate(query), args)
	if err != nil {
		return nil, err
	}
	return numbers{rows}, nil
}

func (c *connection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.ExecContext(ctx, translate(query), args)
}

// CheckNamedValue makes a flag a number, as it is in a column, and bytes a text.
func (c *connection) CheckNamedValue(v *driver.NamedValue) (err error) {
	if v.Value, err = driver.DefaultParameterConverter.ConvertValue(v.Value); err != nil {
		return err
	}
	v.Value = number(v.Value)
	if text, ok := v.Value.([]byte); ok {
		v.Value = string(text)
	}
	return nil
}

// numbers are rows with numbers in place of flags.
type numbers struct{ driver.Rows }

func (r numbers) Next(row []driver.Value) error {
	if err := r.Rows.Next(row); err != nil {
		return err
	}
	for i := range row {
		row[i] = number(row[i])
	}
	return nil
}

func number(v driver.Value) driver.Value {
	switch v {
	case true:
		return int64(1)
	case false:
		return int64(0)
	}
	return v
}
