// Package outboundtest compares the parts that adapters cut rows into with golden files.
package outboundtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/adapter"
	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
)

// Rows are outbound rows by a description.
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

// MarkingPlatform is a platform whose parts can be marked.
type MarkingPlatform interface {
	adapter.Platform
	adapter.Marker
}

// Text is the text of a part, with its length and limit as the platform counts them.
type Text struct {
	Text          string
	Length, Limit int
}

// CheckMarks marks each part of rows as a possible duplicate, and checks that the text keeps to its limit; so must the
// text in place of a file that is refused. textOf and inPlace return these texts; inPlace returns none for a part
// without a file. No part may be Repeatable, else it would be sent again without a mark.
func CheckMarks(t testing.TB, p MarkingPlatform, rows Rows, textOf func(adapter.Part) Text,
	inPlace func(adapter.Part) Text) {
	t.Helper()
	const mark = "(possibly sent twice)"
	for what, m := range rows {
		parts, err := p.Cut(m)
		if err != nil || len(parts) == 0 {
			t.Fatal(what, parts, err)
		}
		for i, part := range parts {
			before := textOf(part).Text
			marked := p.Mark(part)
			text, other := textOf(marked), inPlace(marked)
			if !strings.HasPrefix(text.Text, mark) || text.Length > text.Limit {
				t.Errorf("%s, part %d: %d units, want %d at most: %.40q", what, i, text.Length, text.Limit, text.Text)
			}
			if other.Length > other.Limit {
				t.Errorf("%s, part %d: %d units in place of the file, want %d at most", what, i, other.Length,
					other.Limit)
			}
			if textOf(part).Text != before {
				t.Errorf("%s, part %d: Mark changes the part", what, i)
			}
			if r, is := part.(adapter.Repeatable); is && r.Repeatable() {
				t.Errorf("%s, part %d would be repeated, without a mark", what, i)
			}
		}
	}
}
