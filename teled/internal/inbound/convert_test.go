package inbound

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/inboundtest"
	"arizuko/pkg/msg"
	"arizuko/teled/internal/telegramapi"
)

var us = Self{Platform: "telegram", ID: 99, Username: "arizuko_bot"}

// example is an update and what it shows.
type example struct {
	What   string             `json:"what"`
	Why    string             `json:"why"` // of sent.json: the agent gets nothing, or less than was sent
	Update telegramapi.Update `json:"update"`
}

func examples(t testing.TB, name string) []example {
	return inboundtest.Read[example](t, "testdata/"+name+".json")
}

func TestConvert_Updates_GiveGoldenRows(t *testing.T) {
	inboundtest.Compare(t, func(t *testing.T, path string) (all []inboundtest.Result) {
		for _, e := range inboundtest.Read[example](t, path) {
			in, err := Convert(&e.Update, us)
			all = append(all, inboundtest.Converted(e.What, e.Why, in, err))
		}
		return all
	})
}

// Telegram reports a join in two forms, which have to be one row.
func TestConvert_JoinReportedTwice_HasOneID(t *testing.T) {
	ids := map[string]string{}
	for _, e := range examples(t, "members") {
		r, err := Convert(&e.Update, us)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Messages) > 0 {
			ids[e.What] = r.Messages[0].PlatformID
		}
	}
	joins, leaves := ids["a user joins"], ids["a user is put out"]
	if joins == "" || joins != ids["the same, sent to administrators"] {
		t.Errorf("a join is %q and %q", joins, ids["the same, sent to administrators"])
	}
	if leaves == "" || leaves != ids["a user is banned, sent to administrators"] || leaves == joins {
		t.Errorf("a leave is %q and %q, a join %q", leaves, ids["a user is banned, sent to administrators"], joins)
	}
}

func TestConvert_EditsWithinOneSecond_DifferByContent(t *testing.T) {
	seen := map[string]string{}
	for _, e := range examples(t, "edits")[:7] {
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

// Where each bot has its own ids of messages, all ids of rows begin with the bot's mark.
func TestConvert_LaterBot_MarksItsOwnIDs(t *testing.T) {
	marked := us
	marked.Mark = "b99."
	count := map[bool]int{}
	for _, path := range inboundtest.Paths(t) {
		for _, e := range inboundtest.Read[example](t, path) {
			first, err := Convert(&e.Update, us)
			later, again := Convert(&e.Update, marked)
			if err != nil || again != nil {
				continue // as its golden file says
			}
			check := func(chat, of, got string) {
				mark := ""
				if msg.IDsOfBot(chat) && of != "" {
					mark = marked.Mark
				}
				if count[mark != ""]++; got != mark+of {
					t.Errorf("%s: %q became %q in %s", e.What, of, got, chat)
				}
			}
			for i, m := range slices.Concat(first.Messages, first.Quoted) {
				n := slices.Concat(later.Messages, later.Quoted)[i]
				check(m.ChatJID, m.PlatformID, n.PlatformID)
				check(m.ChatJID, m.TargetID, n.TargetID)
				check(m.ChatJID, m.ReplyToID, n.ReplyToID)
				check(m.ChatJID, m.ThreadID, n.ThreadID)
				check(m.ChatJID, m.Topic, n.Topic)
			}
			for i, thread := range first.Threads {
				check(thread.ChatJID, thread.ID, later.Threads[i].ID)
			}
		}
	}
	if count[true] < 100 || count[false] < 100 {
		t.Errorf("%d ids with a mark, %d without: the examples show too little", count[true], count[false])
	}
}

func TestConvert_NoUpdate_Fails(t *testing.T) {
	if _, err := Convert(nil, us); err == nil {
		t.Error("nil is converted without an error")
	}
}

func TestConvert_HugeText(t *testing.T) {
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
	for _, path := range inboundtest.Paths(f) {
		for _, e := range inboundtest.Read[struct{ Update json.RawMessage }](f, path) {
			f.Add([]byte(e.Update))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var u telegramapi.Update
		if json.Unmarshal(text, &u) == nil {
			inboundtest.CheckConversion(t, "telegram", func() (adapter.Inbound, error) { return Convert(&u, us) })
		}
	})
}
