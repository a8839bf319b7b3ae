package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/testkit/executable"

	"github.com/google/go-cmp/cmp"
)

func TestComparison_Worse(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after []float64
		more          bool
		want          bool
	}{
		"equal":                         {before: []float64{1, 1}, after: []float64{1, 1}},
		"slower, within the limit":      {before: []float64{100, 100}, after: []float64{104, 104}},
		"slower, beyond the limit":      {before: []float64{100, 100}, after: []float64{106, 106}, want: true},
		"slower, within the spread":     {before: []float64{90, 100, 110}, after: []float64{114, 114, 114}},
		"slower, beyond the spread":     {before: []float64{90, 100, 110}, after: []float64{116, 116, 116}, want: true},
		"much faster":                   {before: []float64{100, 100}, after: []float64{10, 10}},
		"throughput, higher":            {before: []float64{100, 100}, after: []float64{200, 200}, more: true},
		"throughput, within the limit":  {before: []float64{100, 100}, after: []float64{96, 96}, more: true},
		"throughput, beyond the limit":  {before: []float64{100, 100}, after: []float64{94, 94}, more: true, want: true},
		"no values":                     {before: []float64{100, 100}, after: []float64{math.NaN(), math.NaN()}, want: true},
		"one slow round of three":       {before: []float64{100, 100, 100}, after: []float64{100, 100, 150}},
		"two slow rounds of five":       {before: []float64{10, 10, 10, 10, 10}, after: []float64{10, 15, 10, 15, 10}},
		"spread of the new build alone": {before: []float64{100, 100, 100}, after: []float64{80, 110, 120}},
	} {
		c := &comparison{figure: figure{more: tt.more}, before: tt.before, after: tt.after}
		if got := c.worse(); got != tt.want {
			t.Errorf("%s: worse is %t; ratio %.3f, spread %.3f", name, got, c.ratio(), c.spread())
		}
	}
}

// fixedScenario has the figures of a build, which its folder of programs names.
func fixedScenario(values map[string]float64, order *[]string) scenario {
	return scenario{name: "fixed", run: func(b *bench, _ context.Context) ([]figure, error) {
		*order = append(*order, b.bin)
		v, ok := values[b.bin]
		if !ok {
			return nil, errors.New("broken build")
		}
		return []figure{{name: "not compared", measured: v}, {name: "compared", unit: "ms", measured: v, compared: v}}, nil
	}}
}

func TestCompareScenario_AlternatesBuilds(t *testing.T) {
	var order []string
	s := fixedScenario(map[string]float64{"old": 2, "new": 3}, &order)
	all, err := compareScenario(t.Context(), s, &bench{bin: "old"}, &bench{bin: "new"}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"old", "new", "new", "old", "old", "new"}, order); diff != "" {
		t.Error(diff)
	}
	const head = "| figure | before | after | after/before | spread | result |\n|---|--:|--:|--:|--:|---|\n"
	if diff := cmp.Diff(head+"| compared | 2 ms | 3 ms | 1.500 | ± 0.0 % | **worse** |\n", comparisonReport(all, false)); diff != "" {
		t.Error(diff)
	}
}

func TestCompareScenario_Failure_NamesBuild(t *testing.T) {
	var order []string
	s := fixedScenario(map[string]float64{"old": 2}, &order)
	_, err := compareScenario(t.Context(), s, &bench{bin: "old"}, &bench{bin: "new"}, 2)
	if err == nil || !strings.Contains(err.Error(), "after: fixed: broken build") {
		t.Errorf("error %v", err)
	}
}

func TestAddFigures_DifferentFigures_Fails(t *testing.T) {
	all, err := addFigures(nil, []figure{{name: "a", compared: 1}}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, figures := range [][]figure{nil, {{name: "b", compared: 1}}, {{name: "a"}}, {{name: "a", compared: 1}, {name: "b", compared: 1}}} {
		if _, err := addFigures(all, figures, false); err == nil {
			t.Errorf("no error for %v", figures)
		}
	}
}

func TestLinkPrograms_OwnAgent_OtherDaemons(t *testing.T) {
	theirs, ours := t.TempDir(), t.TempDir()
	for _, name := range []string{"migrate", "routd", "gated", "teled", "discd", "agent"} {
		if err := os.WriteFile(filepath.Join(theirs, name), []byte("theirs"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(ours, "agent"), []byte("ours"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := linkPrograms(filepath.Join(t.TempDir(), "bin"), theirs, ours); err == nil || !strings.Contains(err.Error(), "slakd") {
		t.Errorf("without slakd: %v", err)
	}

	if err := os.WriteFile(filepath.Join(theirs, "slakd"), []byte("theirs"), 0o700); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "bin")
	if err := linkPrograms(bin, theirs, ours); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"gated": "theirs", "agent": "ours"} {
		if got, err := os.ReadFile(filepath.Join(bin, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// migrateProgram writes a migrate into a folder that makes a database with a table.
func migrateProgram(t *testing.T, table string) (bin string) {
	t.Helper()
	bin = t.TempDir()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(bin, "template.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE ` + table); err != nil {
		t.Fatal(err)
	}
	executable.Script(t, filepath.Join(bin, "migrate"), fmt.Sprintf("cp %s/template.db arizuko.db", bin))
	return bin
}

func TestCheckSchemas_Differences_Refused(t *testing.T) {
	b := &bench{bin: migrateProgram(t, "messages (id INTEGER)"), dir: t.TempDir()}
	if err := b.checkSchemas(migrateProgram(t, "messages (id INTEGER /* of a row */)")); err != nil {
		t.Errorf("equal schemas: %v", err)
	}
	for _, table := range []string{"turns (id INTEGER)", "messages (id TEXT)", "messages (id INTEGER, content TEXT)"} {
		if err := b.checkSchemas(migrateProgram(t, table)); !errors.Is(err, errSchema) {
			t.Errorf("%s: %v", table, err)
		}
	}
}
