// Package inboundtest tests converters of platform events: it compares their rows with golden files
// and checks each row against the rules of the messages table.
package inboundtest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/adapter"
	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
)

// Paths lists the files of examples in testdata: all but the golden ones.
func Paths(t testing.TB) (paths []string) {
	t.Helper()
	all, err := filepath.Glob("testdata/*.json")
	if err != nil || len(all) == 0 {
		t.Fatalf("testdata has no examples: %v", err)
	}
	for _, path := range all {
		if !strings.HasSuffix(path, ".golden.json") {
			paths = append(paths, path)
		}
	}
	return paths
}

// Read reads a file of examples of type E.
func Read[E any](t testing.TB, path string) (examples []E) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &examples); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return examples
}

// Result is the result of a converter for an example.
type Result struct {
	What    string          `json:"what"`
	Why     string          `json:"why"`   // the agent gets nothing, or less than was sent
	Lacks   string          `json:"lacks"` // facts that must be known before it can be converted
	Inbound adapter.Inbound `json:"result"`
	Error   string          `json:"error"`
}

// Converted makes a Result.
func Converted(what, why string, in adapter.Inbound, err error) Result {
	in.Admins = nil // they are the same in most examples, and have tests of their own
	r := Result{What: what, Why: why, Inbound: in}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// Compare converts each file of examples, and compares the results with the golden file beside it.
// Empty fields are left out. In sent.json, which has every kind of message that users can send, each example without a
// row needs a reason.
func Compare(t *testing.T, convert func(t *testing.T, path string) []Result) {
	for _, path := range Paths(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var all []any
			for _, r := range convert(t, path) {
				if filepath.Base(path) == "sent.json" && len(r.Inbound.Messages) == 0 && r.Why == "" {
					t.Errorf("%s: no row, and no reason why", r.What)
				}
				all = append(all, withoutEmpty(t, r))
			}
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			if err := enc.Encode(all); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, strings.TrimSuffix(path, ".json")+".golden.json", b.String())
		})
	}
}

// withoutEmpty is a value as JSON decodes it, without its empty fields.
func withoutEmpty(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&plain); err != nil {
		t.Fatal(err)
	}
	return prune(plain)
}

func prune(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if v[key] = prune(field); v[key] == nil {
				delete(v, key)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = prune(v[i])
		}
	case string, json.Number, bool:
		if v == "" || v == json.Number("0") || v == false {
			return nil
		}
	}
	return value
}

// CheckConversion converts an event twice, and checks that both results are equal, that an error
// comes without rows, and that each row is valid for a platform.
func CheckConversion(t *testing.T, platform string, convert func() (adapter.Inbound, error)) adapter.Inbound {
	t.Helper()
	in, err := convert()
	if err != nil && (in.Messages != nil || in.Quoted != nil || in.Chats != nil || in.Threads != nil ||
		in.Moved != nil) {
		t.Errorf("an error and %+v", in)
	}
	for _, m := range slices.Concat(in.Quoted, in.Messages) {
		CheckRow(t, platform, m)
	}
	again, _ := convert()
	if diff := cmp.Diff(in, again); diff != "" {
		t.Errorf("the second conversion differs:\n%s", diff)
	}
	return in
}

// CheckRow checks a row of a platform against the rules of the messages table.
func CheckRow(t testing.TB, platform string, m *msg.Message) {
	t.Helper()
	pending := 0
	for _, a := range m.Attachments {
		if a.Error == "" && a.Ref != "" {
			pending++
		}
	}
	prefix := platform + ":"
	switch {
	case !strings.HasPrefix(m.ChatJID, prefix), m.ChatJID == prefix:
		t.Errorf("chat %q", m.ChatJID)
	case !strings.HasPrefix(m.Sender, prefix), m.Sender == prefix, m.Sender == prefix+"0":
		t.Errorf("sender %q", m.Sender)
	case m.PlatformID == "", m.Verb == "", m.Timestamp < 0:
		t.Errorf("id %q, verb %q, time %d", m.PlatformID, m.Verb, m.Timestamp)
	case m.PendingFiles != pending:
		t.Errorf("%d files pending, %d to download", m.PendingFiles, pending)
	case m.FilesWanted:
		t.Error("files are wanted before the row is decided")
	case !utf8.ValidString(m.Content), !utf8.ValidString(m.SenderName), strings.ContainsAny(m.SenderName, "\n\r\u202e"):
		t.Errorf("content %q, name %q", m.Content, m.SenderName)
	}
}
