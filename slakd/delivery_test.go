package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	fake "arizuko/pkg/testkit/fakes/slack"
)

// said are the texts that the bot has said in a place, and the names of the files it has shared.
func (r *harness) said(p fake.Place) (all []string) {
	for _, m := range p.Messages() {
		if m.User != r.Me().ID || m.Subtype == "assistant_app_thread" {
			continue
		}
		text := m.Text
		for _, f := range m.Files {
			text = strings.TrimSpace(text + " [" + f.Name + "]")
		}
		all = append(all, text)
	}
	return all
}

func (r *harness) expect(p fake.Place, want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.said(p)); diff != "" {
		r.Errorf("said (-want +got):\n%s", diff)
	}
}

func TestDelivery_TextEditReactionDelete(t *testing.T) {
	t.Parallel()
	r := newHarness(t, fake.Options{})
	question := r.team.Say(r.alice, "question")
	thread := r.team.Thread(question.TS)
	r.Serve()
	r.ends(r.say(r.team, "to **all**, see https://example.org"), msg.OutSent)
	answer := r.ends(r.say(thread, "to @everyone <!here>"), msg.OutSent)
	act := func(kind msg.Kind, target, content string, want msg.OutState) {
		t.Helper()
		r.ends(r.out(thread, func(m *msg.Message) { m.Kind, m.TargetID, m.Content = kind, target, content }), want)
	}
	act(msg.KindEdit, answer.PlatformID, "to _you_", msg.OutSent)
	act(msg.KindReaction, question.TS, "👍", msg.OutSent)
	act(msg.KindReaction, question.TS, "👍", msg.OutSent) // it is there already
	act(msg.KindReaction, question.TS, "🎉", msg.OutSent)
	act(msg.KindReaction, question.TS, "-🎉", msg.OutSent)
	act(msg.KindReaction, question.TS, "-🎉", msg.OutSent)
	act(msg.KindReaction, "1.1", "👍", msg.OutFailed)
	r.expect(thread, "to _you_")
	r.expect(r.team, "to *all*, see https://example.org", "to _you_")
	if got := r.team.Reactions(question.TS); len(got) != 1 || !slices.Equal(got["+1"], []string{r.Me().ID}) {
		t.Errorf("reactions: %v", got)
	}
	act(msg.KindDelete, answer.PlatformID, "", msg.OutSent)
	act(msg.KindDelete, answer.PlatformID, "", msg.OutSent)
	r.expect(thread)
	for _, c := range r.Sent() {
		if len(c.Pings) > 0 || c.Broadcast || c.Method == "chat.postMessage" && (c.Params["unfurl_links"] != "false" || c.Params["unfurl_media"] != "false") {
			t.Errorf("%s pings %q: %v", c.Method, c.Pings, c.Params)
		}
	}
}

func TestDelivery_Files(t *testing.T) {
	t.Parallel()
	r := newHarness(t, fake.Options{})
	if err := os.WriteFile(filepath.Join(r.Data, "cat.txt"), []byte("meow"), 0o600); err != nil {
		t.Fatal(err)
	}
	thread := r.team.Thread(r.team.Say(r.alice, "question").TS)
	r.Serve()
	cat := func(text string) int64 {
		return r.out(thread, func(m *msg.Message) {
			m.Kind, m.Content, m.Attachments = msg.KindFile, text, []msg.Attachment{{Name: "cat.txt", Path: "cat.txt", MIME: "text/plain"}}
		})
	}
	sent := r.ends(cat("a *cat*"), msg.OutSent)
	if all := thread.Messages(); sent.PlatformID == "" || sent.PlatformID != all[len(all)-1].TS {
		t.Errorf("the row is %q, the messages %+v", sent.PlatformID, all)
	}
	r.DelayShares(1)
	sent = r.ends(cat(""), msg.OutSent)
	if all := thread.Messages(); sent.PlatformID == "" || sent.PlatformID != all[len(all)-1].TS {
		t.Errorf("shared late, the row is %q, the messages %+v", sent.PlatformID, all)
	}
	r.DelayShares(1 << 20)
	if sent := r.ends(cat("see"), msg.OutSent); sent.PlatformID != "" {
		t.Errorf("a message that Slack never names has the id %q", sent.PlatformID)
	}
	r.expect(thread, "a _cat_ [cat.txt]", "[cat.txt]", "see [cat.txt]")
	for _, c := range r.Sent() {
		if len(c.Files) > 0 && string(c.Files[0].Data) != "meow" {
			t.Errorf("sent %q", c.Files[0].Data)
		}
	}
}

func TestDelivery_UploadStepFails_SendsFileOnce(t *testing.T) {
	for what, fault := range map[string]fake.Fault{
		"no address":         {Method: "files.getUploadURLExternal", Status: http.StatusBadGateway},
		"broken off":         {Method: "upload", Drop: true},
		"uploaded, no word":  {Method: "upload", Status: http.StatusBadGateway, After: true},
		"completed, no word": {Method: "files.completeUploadExternal", Drop: true, After: true},
		"never completed":    {Method: "files.completeUploadExternal", Status: http.StatusBadGateway},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, fake.Options{})
			if err := os.WriteFile(filepath.Join(r.Data, "cat.txt"), []byte("meow"), 0o600); err != nil {
				t.Fatal(err)
			}
			r.InjectFault(fault)
			r.Serve()
			id := r.out(r.team, func(m *msg.Message) {
				m.Kind, m.Content, m.Attachments = msg.KindFile, "look", []msg.Attachment{{Name: "cat.txt", Path: "cat.txt"}}
			})
			r.ends(id, msg.OutSent)
			r.expect(r.team, "look [cat.txt]")
		})
	}
}

func TestDelivery_Poll(t *testing.T) {
	t.Parallel()
	r := newHarness(t, fake.Options{})
	r.Serve()
	r.InjectFault(fake.Fault{Method: "reactions.add", Status: http.StatusBadGateway, After: true})
	row := r.ends(r.out(r.team, func(m *msg.Message) {
		m.Kind, m.Content = msg.KindPoll, `{"question":"Lunch?","options":["yes","no"]}`
	}), msg.OutSent)
	r.expect(r.team, "Lunch?\n1️⃣ yes\n2️⃣ no")
	r.Until("the reactions", func() bool {
		got := r.team.Reactions(row.PlatformID)
		return len(got) == 2 && got["one"] != nil && got["two"] != nil
	})
}

func TestDelivery_UnavailableChats_FailOnlyTheirRows(t *testing.T) {
	t.Parallel()
	r := newHarness(t, fake.Options{})
	archived, foreign := r.Channel("old", r.alice), r.ChannelWithoutBot("foreign", r.alice)
	left, hidden, gone := r.Channel("left", r.alice), r.PrivateChannel("hidden", r.alice), r.Channel("gone", r.alice)
	archived.Archive(r.alice)
	left.KickBot(r.alice)
	hidden.KickBot(r.alice)
	gone.DeleteChannel()
	r.Serve()
	for _, tt := range []struct {
		in   fake.Place
		want string
	}{
		{archived, "is_archived: the channel is archived"},
		{foreign, "not_in_channel: the bot is not in the channel: /invite it there"},
		{left, "not_in_channel: the bot is not in the channel: /invite it there"},
		{hidden, "channel_not_found: the channel does not exist, or the bot is not in it"},
		{gone, "channel_not_found: the channel does not exist, or the bot is not in it"},
		{r.Place("C404", ""), "channel_not_found: the channel does not exist, or the bot is not in it"},
	} {
		row := r.ends(r.say(tt.in, "hello"), msg.OutFailed)
		parts, err := r.Store.Deliveries(t.Context(), row.ID)
		if err != nil || len(parts) != 1 || parts[0].ErrorClass != msg.Permanent || parts[0].Attempts > 1 || !strings.HasSuffix(parts[0].Error, tt.want) {
			t.Errorf("%s: %+v, %v, want an error that ends with %q", tt.in.ChannelID, parts, err, tt.want)
		}
	}
	r.ends(r.say(r.team, "hello"), msg.OutSent)
	r.expect(r.team, "hello")
}

// works makes an agent work on a message until end is called.
func (r *harness) works(p fake.Place, on string, topic string) (end func()) {
	r.Helper()
	return gatedtest.Work(r.TB, r.Store, "slack:"+p.ChannelID, p.ThreadTS, topic, on)
}

// marked waits until the marked messages in a place are these.
func (r *harness) marked(p fake.Place, want ...string) {
	r.Helper()
	r.Until("the marks are right", func() bool {
		var got []string
		for _, m := range p.Messages() {
			if p.Reactions(m.TS)["eyes"] != nil {
				got = append(got, m.TS)
			}
		}
		return slices.Equal(got, want)
	})
}

func TestMarks_WhileAgentWorks(t *testing.T) {
	t.Parallel()
	r := newConnected(t, fake.Options{})
	one, two := r.team.Say(r.alice, "one").TS, r.team.Say(r.bob, "two").TS
	endOne := r.works(r.team, one, "#one")
	r.marked(r.team, one)
	endTwo := r.works(r.team.Thread(two), two, "#two")
	r.marked(r.team, one, two)
	endOne()
	r.marked(r.team, two)
	endTwo()
	r.marked(r.team)
	r.confirmed()
	for _, row := range r.rows(r.team) {
		if strings.HasPrefix(row, "reaction") {
			t.Errorf("our own mark is a row: %s", row)
		}
	}
}

func TestMarks_AfterCrash_AreRemovedWithTheirRecords(t *testing.T) {
	t.Parallel()
	r := newHarness(t, fake.Options{})
	stop := r.Serve()
	r.connected()
	ts := r.team.Say(r.alice, "one").TS
	r.confirmed()
	end := r.works(r.team, ts, "")
	r.marked(r.team, ts)
	stop()
	end()
	r.marked(r.team, ts)
	r.Serve()
	r.marked(r.team)
	r.forgotten()
}

// forgotten waits until no mark is stored.
func (r *harness) forgotten() {
	r.Helper()
	r.Until("the marks are forgotten", func() bool {
		left, err := r.Store.DaemonCursors(r.Context(), name, "mark ")
		if err != nil {
			r.Fatal(err)
		}
		return len(left) == 0
	})
}

func TestMarks_ScopeMissing_DoesNotDelayDelivery(t *testing.T) {
	t.Parallel()
	r := newConnected(t, fake.Options{Scopes: slices.DeleteFunc(fake.DefaultScopes(), func(s string) bool { return s == "reactions:write" })})
	ts := r.team.Say(r.alice, "one").TS
	r.confirmed()
	end := r.works(r.team, ts, "")
	r.Until("slakd has tried", func() bool {
		return slices.ContainsFunc(r.Calls(), func(c fake.Call) bool { return c.Method == "reactions.add" })
	})
	r.ends(r.say(r.team, "hello"), msg.OutSent)
	end()
	r.forgotten()
}
