package inbound

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/inboundtest"
	"arizuko/pkg/msg"
)

var us = Self{Platform: "discord", ID: "99"}

// example is an event and what it shows.
type example struct {
	What  string          `json:"what"`
	Why   string          `json:"why"`   // it has no row, or less than was sent
	Paste string          `json:"paste"` // its text, if that comes as a file
	Type  string          `json:"type"`
	Data  json.RawMessage `json:"data"`
}

// convert converts an example, which is an event by its number, and learns from it.
func (e *example) convert(known *Guilds, number int) (in adapter.Inbound, lacks string, err error) {
	u, err := discordapi.ParseUpdate(e.Type, "s1", int64(number), e.Data)
	if err != nil {
		return in, "", err
	}
	for _, of := range Pastes(u.Message) {
		of.Pasted = e.Paste
	}
	lacks = known.Lacks(u)
	in, err = Convert(u, us, known)
	known.Learn(u, us)
	return in, lacks, err
}

func examples(t testing.TB, path string) []example { return inboundtest.Read[example](t, path) }

// home is the guild of the examples.
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

// The events of each file happen one after another in the home guild.
func TestConvert_Events_GiveGoldenRows(t *testing.T) {
	inboundtest.Compare(t, func(t *testing.T, path string) (all []inboundtest.Result) {
		known := home(t)
		for i, e := range examples(t, path) {
			in, lacks, err := e.convert(known, i)
			r := inboundtest.Converted(e.What, e.Why, in, err)
			r.Lacks = lacks
			all = append(all, r)
		}
		return all
	})
}

// An edit that is delivered again has the same id, even if the message has changed since.
func TestConvert_Edits_HaveDifferentIDs(t *testing.T) {
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

func TestConvert_NoUpdate_Fails(t *testing.T) {
	if _, err := Convert(nil, us, NewGuilds()); err == nil {
		t.Error("nil is converted without an error")
	}
}

func TestConvert_HugeText(t *testing.T) {
	u, err := discordapi.ParseUpdate("MESSAGE_CREATE", "s1", 1, fmt.Appendf(nil,
		`{"id":"5","channel_id":"20","guild_id":"10","author":{"id":"7"},"mentions":[{"id":"99"}],"content":%q}`,
		strings.Repeat("😀 <@99> asks <@8> ", 20_000)))
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

// A guild that is only unavailable is kept.
func TestGuilds_ForgetWhatIsDeleted(t *testing.T) {
	known := home(t)
	learn := func(kind, data string) {
		u, err := discordapi.ParseUpdate(kind, "s1", 1, []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		known.Learn(u, us)
	}
	message := &discordapi.Update{Place: discordapi.Place{GuildID: "10", ChannelID: "20"}}
	learn("GUILD_DELETE", `{"id":"10","unavailable":true}`)
	if !known.Has("10") || known.Lacks(message) != "" {
		t.Error("an unavailable guild is forgotten")
	}
	learn("CHANNEL_DELETE", `{"id":"20"}`)
	if known.Lacks(message) != "20" {
		t.Error("a deleted channel is known")
	}
	learn("GUILD_ROLE_DELETE", `{"guild_id":"10","role_id":"51"}`)
	if got := known.roleName("10", "51"); got != "role 51" {
		t.Errorf("a deleted role is %q", got)
	}
	learn("GUILD_DELETE", `{"id":"10"}`)
	if known.Has("10") || len(known.channels) != 0 {
		t.Errorf("a deleted guild has %d channels", len(known.channels))
	}
	for i := range 2 * maxNames {
		known.learnName("10", &discordapi.User{ID: fmt.Sprint(i)}, nil)
	}
	if len(known.names) > maxNames {
		t.Errorf("%d names are remembered", len(known.names))
	}
}

// What stands beside the text is bounded in depth and size.
func TestConvert_HugeComponents(t *testing.T) {
	deep := strings.Repeat(`{"type":17,"components":[`, 2000) + `{"type":10,"content":"deep"}` + strings.Repeat(`]}`, 2000)
	wide := strings.Repeat(`{"type":10,"content":"`+strings.Repeat("é", 500)+`"},`, 1000)
	u, err := discordapi.ParseUpdate("MESSAGE_CREATE", "s1", 1, fmt.Appendf(nil,
		`{"id":"5","channel_id":"20","guild_id":"10","author":{"id":"7"},"content":"top","components":[%s,%s]}`, deep, strings.TrimSuffix(wide, ",")))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Convert(u, us, home(t))
	if err != nil {
		t.Fatal(err)
	}
	c := r.Messages[0].Content
	if !strings.HasPrefix(c, "top\né") || !strings.HasSuffix(c, "é…") || !utf8.ValidString(c) || len(c) > maxBeside+10 || strings.Contains(c, "deep") {
		t.Errorf("%d bytes: %.20q … %q", len(c), c, c[len(c)-20:])
	}
}

// A file is a text if it is all that a user sent, forwarded or answered, and small.
func TestPastes_OnlyAloneAndSmall(t *testing.T) {
	const file = `{"filename":"message.txt","content_type":"text/plain; charset=utf-8","size":9,"url":"u"}`
	for data, want := range map[string]bool{
		`{"author":{"id":"7"},"attachments":[` + file + `]}`:                                                                            true,
		`{"author":{"id":"7"},"message_snapshots":[{"message":{"attachments":[` + file + `]}}]}`:                                        true,
		`{"author":{"id":"7"},"message_snapshots":[{"message":{"content":"look","attachments":[` + file + `]}}]}`:                       false,
		`{"author":{"id":"7"},"message_snapshots":[{"message":{"message_snapshots":[{"message":{"attachments":[` + file + `]}}]}},{}]}`: false,
		`{"author":{"id":"7","bot":true},"message_snapshots":[{"message":{"attachments":[` + file + `]}}]}`:                             false,
		`{"author":{"id":"7"},"type":19,"content":"why?","referenced_message":{"author":{"id":"7"},"attachments":[` + file + `]}}`:      true,
		`{"author":{"id":"7"},"type":19,"referenced_message":{"author":{"id":"7","bot":true},"attachments":[` + file + `]}}`:            false,
		`{"author":{"id":"7"},"type":19,"referenced_message":{"attachments":[` + file + `]}}`:                                           false,
		`{"author":{"id":"7"},"type":19,"attachments":[` + file + `]}`:                                                                  true,
		`{"author":{"id":"7"},"content":"look","attachments":[` + file + `]}`:                                                           false,
		`{"author":{"id":"7"},"attachments":[` + file + `,` + file + `]}`:                                                               false,
		`{"author":{"id":"7"},"attachments":[]}`:                                                                                        false,
		`{"author":{"id":"7","bot":true},"attachments":[` + file + `]}`:                                                                 false,
		`{"author":{"id":"7"},"webhook_id":"7","attachments":[` + file + `]}`:                                                           false,
		`{"author":{"id":"7"},"sticker_items":[{}],"attachments":[` + file + `]}`:                                                       false,
		`{"author":{"id":"7"},"attachments":[{"filename":"notes.txt","size":9,"url":"u"}]}`:                                             false,
		`{"author":{"id":"7"},"attachments":[{"filename":"message.txt","size":65537}]}`:                                                 false,
		`{"author":{"id":"7"},"attachments":[{"filename":"message.txt","size":0}]}`:                                                     false,
		`{"attachments":[` + file + `]}`:                                                                                                false,
		`{"author":{"id":"7"},"type":6,"attachments":[` + file + `]}`:                                                                   false,
	} {
		var m discordapi.Message
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatal(err)
		}
		if got := len(Pastes(&m)) == 1; got != want {
			t.Errorf("%s: %v", data, got)
		}
	}
	for file, want := range map[string]string{"\ufeff/new a\r\nb\n": "/new a\nb", "\xff": "", "a\x00b": "", " ": ""} {
		if got := PasteText([]byte(file)); got != want {
			t.Errorf("%q is %q", file, got)
		}
	}
}

func FuzzConvert(f *testing.F) {
	for _, path := range inboundtest.Paths(f) {
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
		in := inboundtest.CheckConversion(t, "discord", func() (adapter.Inbound, error) { return Convert(u, us, known) })
		for _, m := range in.Messages {
			if m.Topic != m.ThreadID {
				t.Errorf("topic %q in thread %q", m.Topic, m.ThreadID)
			}
		}
		known.Learn(u, us)
	})
}
