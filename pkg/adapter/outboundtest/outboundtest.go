// Package outboundtest compares the parts that adapters cut rows into with golden files.
package outboundtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"arizuko/pkg/adapter"
	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
)

// Rows are outbound rows by what they show.
type Rows map[string]*msg.Message

// AddForEachSource adds a copy of each row for every source of outbound rows, since the parts must
// not depend on it.
func (r Rows) AddForEachSource(rows Rows) {
	for _, source := range []string{msg.SourceAgent, msg.SourceTool, msg.SourceNotice, msg.SourceCommand, "reminder",
		"broadcast"} {
		for what, m := range rows {
			row := *m
			row.Source = source
			r[what+", "+source] = &row
		}
	}
}

// CompareParts compares the parts of rows with testdata/cut.golden.json. describe makes of a part
// what the file contains.
func CompareParts(t testing.TB, p adapter.Platform, rows Rows, describe func(adapter.Part) any) {
	t.Helper()
	all := map[string]any{}
	for what, m := range rows {
		parts, err := p.Cut(m)
		if err != nil {
			all[what] = "error: " + err.Error()
			continue
		}
		described := []any{}
		for _, part := range parts {
			described = append(described, describe(part))
		}
		all[what] = described
	}
	got, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "cut.golden.json"), string(got)+"\n")
}

// DataFolder makes a data folder with empty files of these sizes, in bytes.
func DataFolder(t testing.TB, sizes map[string]int64) string {
	t.Helper()
	data := t.TempDir()
	for name, size := range sizes {
		path := filepath.Join(data, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
	return data
}
