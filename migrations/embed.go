// Package migrations is the one history of the database's schema. Each step is a pair of files,
// NNNN_name.up.sql and NNNN_name.down.sql, numbered from 1 without gaps; the statements of
// a released step are never edited.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// FS holds the SQL files.
//
//go:embed *.sql
var FS embed.FS

// Migration is one step up.
type Migration struct {
	Version int
	Name    string // without number and ending
	SQL     string
}

// Up returns the steps up in order. Tests create their databases from it; cmd/migrate creates all
// others. It fails only if a file has a wrong name, which a test rules out.
func Up() ([]Migration, error) { return up(FS) }

// Latest is the highest version, the one this program was built for.
func Latest() int {
	steps, err := Up()
	if err != nil || len(steps) == 0 {
		return 0
	}
	return steps[len(steps)-1].Version
}

// up relies on the names sorting like their numbers, as four digits do.
func up(files fs.ReadFileFS) ([]Migration, error) {
	names, err := fs.Glob(files, "*.up.sql")
	if err != nil {
		return nil, err
	}
	var steps []Migration
	for _, name := range names {
		number, rest, _ := strings.Cut(name, "_")
		version, err := strconv.Atoi(number)
		if err != nil || len(number) != 4 {
			return nil, fmt.Errorf("%s: want NNNN_name.up.sql", name)
		}
		script, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		steps = append(steps, Migration{version, strings.TrimSuffix(rest, ".up.sql"), string(script)})
	}
	return steps, nil
}
