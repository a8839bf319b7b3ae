package storetest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver

	"arizuko/migrations"
	"arizuko/pkg/store"
)

// PostgresEnv names the variable with the URL of a Postgres server on which tests make databases of their own. Without
// it tests use files.
const PostgresEnv = "ARIZUKO_TEST_POSTGRES"

// Server is the URL of the Postgres server that tests use, "" for files.
func Server() string { return os.Getenv(PostgresEnv) } //nolint:forbidigo // of tests, which have no configuration

// database creates a migrated database on the server, dropped when the test ends.
func database(t testing.TB) string {
	t.Helper()
	template, err := template()
	if err != nil {
		t.Fatal("a template of databases: ", err)
	}
	return create(t, "TEMPLATE "+template+" STRATEGY FILE_COPY")
}

// Empty creates a database without a schema on the server, dropped when the test ends.
func Empty(t testing.TB) string {
	t.Helper()
	return create(t, "")
}

func create(t testing.TB, options string) string {
	t.Helper()
	name := "test_" + strconv.Itoa(os.Getpid()) + "_" + strconv.FormatInt(next(), 10)
	ctx := context.Background()
	if err := admin(ctx, `CREATE DATABASE `+name+` `+options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin(ctx, `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`); err != nil {
			t.Error(err)
		}
	})
	return named(name)
}

// LastDelivery is the query of the last number that was given to a change of a delivery.
func LastDelivery() string {
	if Server() != "" {
		return `SELECT last_value FROM delivery_numbers`
	}
	return `SELECT value FROM counters WHERE name = 'deliveries'`
}

// OnFile skips a test that is about a database file if tests use a server.
func OnFile(t testing.TB) {
	t.Helper()
	if Server() != "" {
		t.Skip("about a file: make test")
	}
}

var databases struct {
	sync.Mutex
	last int64
}

func next() int64 {
	databases.Lock()
	defer databases.Unlock()
	databases.last++
	return databases.last
}

// template creates, once for all tests on a server, a database with the schema as these migrations make it.
var template = sync.OnceValues(func() (string, error) {
	steps, err := migrations.Postgres()
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	for _, step := range steps {
		_, _ = hash.Write([]byte(step.SQL)) // never fails
	}
	name := "template_" + hex.EncodeToString(hash.Sum(nil))[:16]
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, Server())
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	// Other test programs do the same at the same time.
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(1)`); err != nil {
		return "", err
	}
	var exists bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)`,
		name).Scan(&exists); err != nil || exists {
		return name, err
	}
	if _, err := conn.Exec(ctx, `CREATE DATABASE `+name+`_making`); err != nil {
		return "", err
	}
	if err := MigratePostgres(ctx, named(name+"_making"), steps); err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, `ALTER DATABASE `+name+`_making RENAME TO `+name)
	return name, err
})

// MigratePostgres runs the steps on an empty database.
func MigratePostgres(ctx context.Context, database string, steps []migrations.Migration) error {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, m := range steps {
		if _, err := conn.Exec(ctx, m.SQL); err != nil {
			return fmt.Errorf("migration %d %s: %w", m.Version, m.Name, err)
		}
	}
	_, err = conn.Exec(ctx,
		`CREATE TABLE schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)`)
	if err == nil {
		_, err = conn.Exec(ctx, `INSERT INTO schema_migrations VALUES ($1, false)`, migrations.Latest())
	}
	return err
}

// named is the server's URL with another database.
func named(database string) string {
	u, err := url.Parse(Server())
	if err != nil {
		return err.Error()
	}
	u.Path = "/" + database
	return u.String()
}

func admin(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, Server())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

// Exec changes a database on a connection of its own, as a program of others would. Statements with parameters are
// SQLite's.
func Exec(t testing.TB, database, statement string, args ...any) {
	t.Helper()
	driver := "sqlite3"
	if store.IsServer(database) {
		driver = "pgx"
		n := 0
		statement = regexp.MustCompile(`\?`).ReplaceAllStringFunc(statement,
			func(string) string { n++; return "$" + strconv.Itoa(n) })
	} else {
		database += "?_busy_timeout=10000"
	}
	db, err := sql.Open(driver, database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatal(err)
	}
}
