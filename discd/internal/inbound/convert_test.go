package inbound

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
)

var us = Self{ID: "99"}

// TestConvert turns the events of each file, which happen one after another in a guild that is
// known, into their golden rows.
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

// example is an event and what it shows.
type example struct {
	What string          `json:"what"`
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

func examples(t testing.TB, path string) (all []example) {
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

// home is the guild in which the examples happen.
func home(t testing.TB) *Guilds {
	t.Helper()
	known := NewGuilds()
	for _, e := range examples(t, "testdata/home.json") {
		u, err := discordapi.ParseUpdate(e.Type, "before", 1, e.Data)
		if err != nil {
			t.Fatal(err)
		}
		known.Learn(u, us)
	}
	return known
}

func convertAll(t *testing.T, path string) string {
	t.Helper()
	known := home(t)
	var all []any
	for i, e := range examples(t, path) {
		out := map[string]any{"what": e.What}
		u, err := discordapi.ParseUpdate(e.Type, "s1", int64(i), e.Data)
		if err == nil {
			out["lacks"] = known.Lacks(u)
			out["result"], err = Convert(u, us, known)
			known.Learn(u, us)
		}
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

// TestEditsAreToldApart from each other; what comes again is the same row, whatever else of the
// message has changed.
func TestEditsAreToldApart(t *testing.T) {
	seen := map[string]string{}
	for _, e := range examples(t, "testdata/edits.json")[:4] {
		u, err := discordapi.ParseUpdate(e.Type, "s1", 1, e.Data)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Convert(u, us, home(t))
		if err != nil || len(r.Messages) != 1 {
			t.Fatalf("%s: %d rows, %v", e.What, len(r.Messages), err)
		}
		id := r.Messages[0].PlatformID
		if other, again := seen[id]; again != strings.HasPrefix(e.What, "again: ") {
			t.Errorf("%q and %q are both %s", other, e.What, id)
		}
		seen[id] = e.What
	}
}

func TestNoUpdate(t *testing.T) {
	if _, err := Convert(nil, us, NewGuilds()); err == nil {
		t.Error("nothing is converted without an error")
	}
}

func TestHugeText(t *testing.T) {
	u, err := discordapi.ParseUpdate("MESSAGE_CREATE", "s1", 1, fmt.Appendf(nil,
		`{"id":"5","channel_id":"20","guild_id":"10","author":{"id":"7"},"mentions":[{"id":"99"}],"content":%q}`,
		strings.Repeat("😀 <@99> <@8> ", 20_000)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Convert(u, us, home(t))
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Messages[0]; m.Verb != msg.VerbMention || strings.Count(m.Content, "@") != 20_000 {
		t.Errorf("a %s with %d names left", m.Verb, strings.Count(m.Content, "@"))
	}
}

// TestGuildsForget what is gone, and keep what only cannot be reached.
func TestGuildsForget(t *testing.T) {
	known := home(t)
	learn := func(kind, data string) {
		u, err := discordapi.ParseUpdate(kind, "s1", 1, []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		known.Learn(u, us)
	}
	message := &discordapi.Update{Message: &discordapi.Message{GuildID: "10", ChannelID: "20"}}
	learn("GUILD_DELETE", `{"id":"10","unavailable":true}`)
	if !known.Has("10") || known.Lacks(message) != "" {
		t.Error("a guild that cannot be reached is forgotten")
	}
	learn("CHANNEL_DELETE", `{"id":"20"}`)
	if known.Lacks(message) != "20" {
		t.Error("a channel that is gone is known")
	}
	learn("GUILD_ROLE_DELETE", `{"guild_id":"10","role_id":"51"}`)
	if got := known.roleName("10", "51"); got != "role 51" {
		t.Errorf("a role that is gone is %q", got)
	}
	learn("GUILD_DELETE", `{"id":"10"}`)
	if known.Has("10") || len(known.channels) != 0 {
		t.Errorf("a guild that is gone has %d channels", len(known.channels))
	}
	for i := range 2 * namesMost {
		known.learnName("10", &discordapi.User{ID: fmt.Sprint(i)}, nil)
	}
	if len(known.names) > namesMost {
		t.Errorf("%d names are remembered", len(known.names))
	}
}

func FuzzConvert(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, ".golden.json") {
			continue
		}
		for _, e := range examples(f, path) {
			f.Add(e.Type, []byte(e.Data))
		}
	}
	f.Fuzz(func(t *testing.T, kind string, text []byte) {
		u, err := discordapi.ParseUpdate(kind, "s1", 7, text)
		if err != nil {
			return
		}
		known := home(t)
		r, err := Convert(u, us, known)
		if err != nil && (r.Messages != nil || r.Chats != nil || r.Threads != nil) {
			t.Errorf("an error and %+v", r)
		}
		for _, m := range r.Messages {
			checkRow(t, m)
		}
		again, _ := Convert(u, us, known)
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("another result the second time:\n%s", diff)
		}
		known.Learn(u, us)
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
	case !strings.HasPrefix(m.ChatJID, "discord:"), !strings.HasPrefix(m.Sender, "discord:"), m.Sender == "discord:":
		t.Errorf("addresses %q, %q", m.ChatJID, m.Sender)
	case m.PlatformID == "", m.Verb == "", m.Timestamp < 0:
		t.Errorf("id %q, verb %q, time %d", m.PlatformID, m.Verb, m.Timestamp)
	case m.PendingFiles != pending:
		t.Errorf("%d files pending, %d to fetch", m.PendingFiles, pending)
	case m.Topic != m.ThreadID:
		t.Errorf("topic %q in thread %q", m.Topic, m.ThreadID)
	case !utf8.ValidString(m.Content), !utf8.ValidString(m.SenderName), strings.ContainsAny(m.SenderName, "\n\r\u202e"):
		t.Errorf("content %q, name %q", m.Content, m.SenderName)
	}
}
