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
	"github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
)

var us = Self{User: "UBOT", Bot: "BBOT"}

// book is a workspace's names.
type book struct{}

func (book) User(id string) string {
	return map[string]string{
		"U1": "Ada", "U2": "Bob", "U7": "CI bot", "B9": "Nine", "UEVIL": "Eve\u202e\nmallory",
	}[id]
}

func (book) Chat(channel string) (msg.ChatKind, string) {
	switch channel {
	case "C1":
		return msg.ChatChannel, "#team"
	case "C2":
		return msg.ChatChannel, "#other"
	case "G9":
		return msg.ChatChannel, "#hush"
	case "C7":
		return msg.ChatGroup, "mpdm-ada--bob-1"
	case "D1":
		return msg.ChatDM, "Ada"
	}
	return "", ""
}

// TestConvert turns the events of each file into its golden rows.
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
	What  string          `json:"what"`
	Event json.RawMessage `json:"event"`
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

// payload is an event in its envelope.
func payload(event json.RawMessage) []byte {
	return []byte(`{"type":"event_callback","event_id":"Ev1","event_time":1764000001,"event":` + string(event) + `}`)
}

func convert(payload []byte) (adapter.Inbound, error) {
	e, err := Decode(payload)
	if err != nil {
		return adapter.Inbound{}, err
	}
	return Convert(e, us, book{})
}

func convertAll(t *testing.T, path string) string {
	t.Helper()
	var all []any
	for _, e := range examples(t, path) {
		r, err := convert(payload(e.Event))
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

// named is the result of an example.
func named(t *testing.T, file, what string) adapter.Inbound {
	t.Helper()
	for _, e := range examples(t, "testdata/"+file+".json") {
		if e.What == what {
			r, err := convert(payload(e.Event))
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
	}
	t.Fatalf("there is no %q in %s", what, file)
	return adapter.Inbound{}
}

// TestAMentionIsToldTwice takes the two events of one post for one row.
func TestAMentionIsToldTwice(t *testing.T) {
	first, again := named(t, "mentions", "of us"), named(t, "mentions", "the same post, told again")
	if diff := cmp.Diff(first, again); diff != "" || first.Messages[0].Verb != msg.VerbMention {
		t.Errorf("a %s, told again (-first +again):\n%s", first.Messages[0].Verb, diff)
	}
}

func TestWhatIsToldAgainLaterIsAnotherRow(t *testing.T) {
	for _, pair := range [][3]string{{"reactions", "given", "again, later"}, {"edits", "an edit", "another"}, {"reactions", "given", "taken back"}} {
		a, b := named(t, pair[0], pair[1]).Messages[0], named(t, pair[0], pair[2]).Messages[0]
		if a.PlatformID == b.PlatformID || a.TargetID != b.TargetID {
			t.Errorf("%s and %s: %s, %s", pair[1], pair[2], a.PlatformID, b.PlatformID)
		}
	}
}

func TestCommand(t *testing.T) {
	for _, tt := range []struct{ command, text, want string }{
		{"/arizuko", "new hello <@U2|bob> &amp; co", "/new hello @Bob & co"},
		{"/arizuko", "/new hello", "/new hello"},
		{"/arizuko", " stop ", "/stop"},
		{"/arizuko", "", "/help"},
		{"/new", "#topic hello", "/new #topic hello"},
		{"/stop", "", "/stop"},
	} {
		r, err := Command(&slack.SlashCommand{Command: tt.command, Text: tt.text, ChannelID: "C1", UserID: "U1", TriggerID: "7.8.ab"}, book{})
		if err != nil {
			t.Fatal(err)
		}
		want := &msg.Message{
			ChatJID: "slack:C1", PlatformID: "slash:7.8.ab", Sender: "slack:U1", SenderName: "Ada",
			Verb: msg.VerbMessage, Content: tt.want, Addressed: true,
		}
		if diff := cmp.Diff(want, r.Messages[0]); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.command, tt.text, diff)
		}
	}
	for _, c := range []slack.SlashCommand{{}, {UserID: "U1", TriggerID: "7"}, {ChannelID: "C1", TriggerID: "7"}, {ChannelID: "C1", UserID: "U1"}} {
		if r, err := Command(&c, book{}); err == nil || r.Messages != nil {
			t.Errorf("%+v gives %+v", c, r)
		}
	}
}

func TestHugeText(t *testing.T) {
	text := strings.Repeat("<@UBOT> 😀 <@U2> &amp; ", 20_000)
	r, err := Convert(&Event{Message: &Message{Channel: "C1", User: "U1", TS: "1764000001.000100", Text: text}}, us, book{})
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Messages[0]; m.Verb != msg.VerbMention || strings.Count(m.Content, "@Bob &") != 20_000 || strings.Contains(m.Content, "UBOT") {
		t.Errorf("a %s with %d names left", m.Verb, strings.Count(m.Content, "@"))
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
			f.Add(payload(e.Event))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := convert(text)
		if err != nil && (r.Messages != nil || r.Chats != nil) {
			t.Errorf("an error and %+v", r)
		}
		for _, m := range r.Messages {
			checkRow(t, m)
		}
		again, _ := convert(text)
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
	case !strings.HasPrefix(m.ChatJID, "slack:"), !strings.HasPrefix(m.Sender, "slack:"), m.Sender == "slack:", m.ChatJID == "slack:":
		t.Errorf("addresses %q, %q", m.ChatJID, m.Sender)
	case m.PlatformID == "", m.Verb == "", m.Timestamp < 0:
		t.Errorf("id %q, verb %q, time %d", m.PlatformID, m.Verb, m.Timestamp)
	case m.PendingFiles != pending:
		t.Errorf("%d files pending, %d to fetch", m.PendingFiles, pending)
	case !utf8.ValidString(m.Content), !utf8.ValidString(m.SenderName), strings.ContainsAny(m.SenderName, "\n\r\u202e"):
		t.Errorf("content %q, name %q", m.Content, m.SenderName)
	case m.ThreadID != "" && !isTS(m.ThreadID):
		t.Errorf("thread %q", m.ThreadID)
	}
}
