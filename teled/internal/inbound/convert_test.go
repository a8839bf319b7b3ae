package inbound

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
	"arizuko/teled/internal/telegramapi"
)

var us = Self{ID: 99, Username: "arizuko_bot"}

// TestConvert turns the updates of each file into its golden rows.
func TestConvert(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, ".golden.json") {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			golden.Compare(t, strings.TrimSuffix(path, ".json")+".golden.json", convertAll(t, path))
		})
	}
}

// example is an update and what it shows.
type example struct {
	What   string             `json:"what"`
	Update telegramapi.Update `json:"update"`
}

func examples(t *testing.T, path string) (all []example) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func convertAll(t *testing.T, path string) string {
	t.Helper()
	var all []any
	for _, e := range examples(t, path) {
		r, err := Convert(&e.Update, us)
		out := map[string]any{"what": e.What, "result": r}
		if err != nil {
			out["error"] = err.Error()
		}
		all = append(all, bare(t, out))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(all); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// bare is a value as JSON has it, without any field that is empty.
func bare(t *testing.T, value any) any {
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

// TestJoinIsToldTwice takes the two forms in which Telegram tells of one event for one row.
func TestJoinIsToldTwice(t *testing.T) {
	ids := map[string]string{}
	for _, e := range examples(t, "testdata/members.json") {
		r, err := Convert(&e.Update, us)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Messages) > 0 {
			ids[e.What] = r.Messages[0].PlatformID
		}
	}
	joins, leaves := ids["somebody joins"], ids["somebody is put out"]
	if joins == "" || joins != ids["the same, told to administrators"] {
		t.Errorf("a join is %q and %q", joins, ids["the same, told to administrators"])
	}
	if leaves == "" || leaves != ids["somebody is banned, told to administrators"] || leaves == joins {
		t.Errorf("a leave is %q and %q, a join %q", leaves, ids["somebody is banned, told to administrators"], joins)
	}
}

// TestEditsOfOneSecond are told apart by what they say.
func TestEditsOfOneSecond(t *testing.T) {
	seen := map[string]string{}
	for _, e := range examples(t, "testdata/edits.json")[:7] {
		r, err := Convert(&e.Update, us)
		if err != nil {
			t.Fatal(err)
		}
		m := r.Messages[0]
		if other, ok := seen[m.ChatJID+m.PlatformID]; ok {
			t.Errorf("%q and %q are both %s", other, e.What, m.PlatformID)
		}
		seen[m.ChatJID+m.PlatformID] = e.What
	}
}

func TestNoUpdate(t *testing.T) {
	if _, err := Convert(nil, us); err == nil {
		t.Error("nothing is converted without an error")
	}
}

func TestHugeText(t *testing.T) {
	text := strings.Repeat("😀 @arizuko_bot ", 20_000)
	var entities []telegramapi.MessageEntity
	for i := range 2_000 {
		entities = append(entities, telegramapi.MessageEntity{Type: telegramapi.EntityMention, Offset: i*16 + 3, Length: 12})
	}
	r, err := Convert(&telegramapi.Update{Message: &telegramapi.Message{
		ID: 1, Chat: telegramapi.Chat{ID: -5}, From: &telegramapi.User{ID: 7}, Text: text, Entities: entities,
	}}, us)
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Messages[0]; m.Verb != msg.VerbMention || strings.Count(m.Content, "@") != 18_000 {
		t.Errorf("a %s with %d names left", m.Verb, strings.Count(m.Content, "@"))
	}
}

func FuzzConvert(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		var all []struct{ Update json.RawMessage }
		if json.Unmarshal(text, &all) != nil {
			continue
		}
		for _, e := range all {
			if e.Update != nil {
				f.Add([]byte(e.Update))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var u telegramapi.Update
		if json.Unmarshal(text, &u) != nil {
			return
		}
		r, err := Convert(&u, us)
		if err != nil && (r.Messages != nil || r.Chats != nil || r.Moved != nil) {
			t.Errorf("an error and %+v", r)
		}
		for _, m := range r.Messages {
			checkRow(t, m)
		}
		again, _ := Convert(&u, us)
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("another result the second time:\n%s", diff)
		}
	})
}

// checkRow holds a row against what the table of messages takes.
func checkRow(t *testing.T, m *msg.Message) {
	t.Helper()
	pending := 0
	for _, a := range m.Attachments {
		if a.Error == "" && a.Ref != "" {
			pending++
		}
	}
	switch {
	case !strings.HasPrefix(m.ChatJID, "telegram:"), !strings.HasPrefix(m.Sender, "telegram:"), m.Sender == "telegram:0":
		t.Errorf("addresses %q, %q", m.ChatJID, m.Sender)
	case m.PlatformID == "", m.Verb == "", m.Timestamp < 0:
		t.Errorf("id %q, verb %q, time %d", m.PlatformID, m.Verb, m.Timestamp)
	case m.PendingFiles != pending:
		t.Errorf("%d files pending, %d to fetch", m.PendingFiles, pending)
	case !utf8.ValidString(m.Content), !utf8.ValidString(m.SenderName), strings.ContainsAny(m.SenderName, "\n\r\u202e"):
		t.Errorf("content %q, name %q", m.Content, m.SenderName)
	}
}
