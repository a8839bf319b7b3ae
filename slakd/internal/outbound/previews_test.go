package outbound

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/slack"
	"arizuko/slakd/internal/slackapi"
)

func TestPreview_Stream_GrowsAndBecomesTheAnswer(t *testing.T) {
	previewTest(t, fake.Options{RateLimits: true}, func(f *previewFixture) {
		ts := f.show(adapter.Preview{})
		f.stream(ts, fake.Stream{Plan: adapter.PreviewStart})
		f.show(adapter.Preview{PlatformID: ts, Line: "Read <!here>…", Plan: []agentproto.Step{{Content: "Look", Status: agentproto.StepInProgress}},
			Tools: []agentproto.Tool{{ID: "1", Title: "Read <!here>", Status: agentproto.ToolRunning}}})
		f.show(adapter.Preview{PlatformID: ts, Text: "One <@U1> & **two", Plan: []agentproto.Step{{Content: "Look", Status: agentproto.StepCompleted}},
			Tools: []agentproto.Tool{{ID: "1", Title: "Read <!here>", Status: agentproto.ToolFailed}}})
		appended := f.calls("chat.appendStream")
		f.show(adapter.Preview{PlatformID: ts, Text: "One <@U1> & **two", Plan: []agentproto.Step{{Content: "Look", Status: agentproto.StepCompleted}}})
		if n := f.calls("chat.appendStream"); n != appended {
			t.Error("a call without news")
		}
		f.show(adapter.Preview{PlatformID: ts, Text: "One <@U1> & **two** three"})
		f.stream(ts, fake.Stream{Plan: "Writing the answer…", Text: "One <\u2060@U1> & **two** three", Tasks: []fake.StreamTask{
			{ID: "step 0", Title: "Look", Status: "complete"}, {ID: "tool 1", Title: "Read <\u2060!here>", Status: "error"},
		}})
		for range 2 { // a repeat does no harm
			if err := f.takes(ts, "One <@U1> & **two** three, four"); err != nil {
				t.Error(err)
			}
		}
		if diff := cmp.Diff([]string{"One &lt;@U1&gt; &amp; *two* three, four"}, f.replies()); diff != "" {
			t.Errorf("replies (-want +got):\n%s", diff)
		}
		f.text(ts)
		for _, c := range f.server.Calls() {
			if len(c.Pings) > 0 {
				t.Errorf("%s pings %v", c.Method, c.Pings)
			}
			if c.Method == "chat.update" && (c.Metadata == nil || c.Metadata.Type != "arizuko_part") {
				t.Error("the answer has no tag")
			}
		}
	})
}

// A stream that is too old, whose text has changed, which Slack has ended, or of which it is not known what it shows, is
// edited: one message with the whole text.
func TestPreview_StreamThatCannotGoOn_IsEdited(t *testing.T) {
	for name, hinder := range map[string]func(f *previewFixture, ts string) adapter.Preview{
		"old": func(*previewFixture, string) adapter.Preview {
			time.Sleep(maxStreaming + time.Second) //nolint:forbidigo // in a bubble
			return adapter.Preview{Text: "one two"}
		},
		"ended by Slack": func(*previewFixture, string) adapter.Preview { return adapter.Preview{Text: "one two"} },
		"changed":        func(*previewFixture, string) adapter.Preview { return adapter.Preview{Text: "two"} },
		"too long": func(*previewFixture, string) adapter.Preview {
			return adapter.Preview{Text: "one " + strings.Repeat("w ", 6000)}
		},
		"restart": func(f *previewFixture, _ string) adapter.Preview {
			f.previews.byTS = nil
			return adapter.Preview{Text: "one two"}
		},
		"restart, ended by Slack": func(f *previewFixture, _ string) adapter.Preview {
			f.previews.byTS = nil
			f.server.ExpireStreams()
			return adapter.Preview{Text: "one two"}
		},
		"answer lost": func(f *previewFixture, ts string) adapter.Preview {
			f.server.InjectFault(fake.Fault{Method: "chat.appendStream", Drop: true, After: true})
			if _, err := f.try(adapter.Preview{PlatformID: ts, Text: "one two"}); err == nil {
				f.t.Error("a broken connection is no error")
			}
			return adapter.Preview{Text: "one two"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			previewTest(t, fake.Options{}, func(f *previewFixture) {
				ts := f.show(adapter.Preview{})
				f.show(adapter.Preview{PlatformID: ts, Text: "one"})
				p := hinder(f, ts)
				if name == "ended by Slack" {
					f.server.ExpireStreams()
				}
				p.PlatformID = ts
				f.show(p)
				if got := strings.Fields(strings.TrimPrefix(f.text(ts), "…")); len(got) == 0 || !strings.HasSuffix(strings.TrimSpace(p.Text), strings.Join(got, " ")) {
					t.Errorf("it shows %.50q", got)
				}
				p.Line = "Read…"
				f.show(p)
				if got := f.text(ts); !strings.HasSuffix(got, "\n\n⏳ Read…") {
					t.Errorf("then it shows %.50q", got)
				}
				f.expectButton(ts, true)
				if got := f.PreviewEvery(f.lane()); got != updateEvery {
					t.Errorf("it is changed every %s", got)
				}
				if err := f.takes(ts, "final"); err != nil {
					t.Error(err)
				}
				f.expectButton(ts, false)
				if diff := cmp.Diff([]string{"final"}, f.replies()); diff != "" {
					t.Errorf("replies (-want +got):\n%s", diff)
				}
				for _, c := range f.server.Sent() {
					if c.Method == "chat.postMessage" && (c.Params["unfurl_links"] != "false" || c.Params["unfurl_media"] != "false") {
						t.Errorf("links have previews: %v", c.Params)
					}
				}
			})
		})
	}
}

// Where Slack takes no stream the preview is a message that is edited.
func TestPreview_NoStream_IsEdited(t *testing.T) {
	for name, set := range map[string]func(f *previewFixture, p *adapter.Preview){
		"top level":        func(f *previewFixture, _ *adapter.Preview) { f.place.ThreadTS = "" },
		"mode status":      func(_ *previewFixture, p *adapter.Preview) { p.Mode = msg.PreviewLine },
		"asked by a bot":   func(f *previewFixture, _ *adapter.Preview) { f.turn = f.asks("agent:other") },
		"refused channel":  func(f *previewFixture, _ *adapter.Preview) { f.refuses("channel_type_not_supported") },
		"refused, scope":   func(f *previewFixture, _ *adapter.Preview) { f.refuses("missing_scope") },
		"unknown method":   func(f *previewFixture, _ *adapter.Preview) { f.refuses("unknown_method") },
		"no longer a user": func(f *previewFixture, _ *adapter.Preview) { f.turn = f.asks("slack:U404") },
	} {
		t.Run(name, func(t *testing.T) {
			previewTest(t, fake.Options{}, func(f *previewFixture) {
				var p adapter.Preview
				set(f, &p)
				p.PlatformID = f.show(p)
				if got := f.text(p.PlatformID); got != adapter.PreviewStart {
					t.Errorf("it begins with %q", got)
				}
				f.expectButton(p.PlatformID, false)
				p.Line = "Read *it*…"
				f.show(p)
				if got := f.text(p.PlatformID); got != "⏳ Read *\u200bit\u200b*\u200b…" {
					t.Errorf("it shows %q", got)
				}
				if p.Mode == "" {
					p.Text, p.Line = "**half", ""
					f.show(p)
					if got := f.text(p.PlatformID); !strings.Contains(got, "half") {
						t.Errorf("it shows %q", got)
					}
				}
				f.expectButton(p.PlatformID, true)
				if err := f.takes(p.PlatformID, "final"); err != nil {
					t.Error(err)
				}
				f.expectButton(p.PlatformID, false)
				if diff := cmp.Diff([]string{"final"}, f.replies()); diff != "" {
					t.Errorf("replies (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestPreview_Refused_IsClassified(t *testing.T) {
	previewTest(t, fake.Options{}, func(f *previewFixture) {
		class := func(err error) msg.ErrorClass {
			failure := &adapter.Failure{}
			if !errors.As(err, &failure) {
				t.Fatalf("%v is no failure", err)
			}
			return failure.Class
		}
		f.server.InjectFault(fake.Fault{Method: "chat.startStream", RetryAfter: 7})
		if _, err := f.try(adapter.Preview{}); class(err) != msg.Rate {
			t.Errorf("a rate limit at the start: %v", err)
		}
		ts := f.show(adapter.Preview{})
		f.server.InjectFault(fake.Fault{Method: "chat.appendStream", RetryAfter: 7})
		if _, err := f.try(adapter.Preview{PlatformID: ts, Text: "one"}); class(err) != msg.Rate {
			t.Errorf("a rate limit: %v", err)
		}
		f.show(adapter.Preview{PlatformID: ts, Text: "one two"})
		f.stream(ts, fake.Stream{Plan: "Writing the answer…", Text: "one two"})
		f.place.Remove(ts) // by an admin
		if _, err := f.try(adapter.Preview{PlatformID: ts, Text: "one two three"}); class(err) != msg.Permanent {
			t.Errorf("a message that is gone: %v", err)
		}
		if err := f.takes(ts, "final"); class(err) != msg.Permanent {
			t.Errorf("an answer in place of a message that is gone: %v", err)
		}
		if err := f.RemovePreview(f.t.Context(), f.lane(), ts); err != nil {
			t.Errorf("the removal of a message that is gone: %v", err)
		}
	})
}

// Slack is asked for the bot's team before a stream begins: if that fails, no message can be left.
func TestPreview_NoTeam_NothingIsSent(t *testing.T) {
	previewTest(t, fake.Options{}, func(f *previewFixture) {
		for _, fault := range []fake.Fault{{Error: "internal_error"}, {Status: 502}, {Drop: true}} {
			fault.Method = "auth.test"
			f.server.InjectFault(fault)
			_, err := f.try(adapter.Preview{})
			failure := &adapter.Failure{}
			if !errors.As(err, &failure) || failure.Class != msg.Transient || !errors.Is(err, adapter.ErrUnsent) {
				t.Errorf("%+v: %v", fault, err)
			}
		}
	})
}

func TestPreview_Removed(t *testing.T) {
	for name, prepare := range map[string]func(f *previewFixture){
		"open":    func(*previewFixture) {},
		"ended":   func(f *previewFixture) { f.server.ExpireStreams() },
		"restart": func(f *previewFixture) { f.previews.byTS = nil },
		"a text":  func(f *previewFixture) { f.refuses("channel_type_not_supported") },
	} {
		t.Run(name, func(t *testing.T) {
			previewTest(t, fake.Options{}, func(f *previewFixture) {
				if name == "a text" {
					prepare(f)
				}
				ts := f.show(adapter.Preview{})
				prepare(f)
				for range 2 {
					if err := f.RemovePreview(f.t.Context(), f.lane(), ts); err != nil {
						t.Error(err)
					}
				}
				if got := f.replies(); len(got) > 0 {
					t.Errorf("left: %q", got)
				}
			})
		})
	}
}

func TestTakeOver_OnlyOfMessages(t *testing.T) {
	s := &Sender{Identity: first}
	for _, test := range []struct {
		part call
		id   string
		want bool
	}{
		{call{method: postMessage}, "1.2", true},
		{call{method: postMessage}, "", false},
		{call{method: postMessage}, "old:1.2", false},
		{call{method: postMessage}, "1.2:e:3", false},
		{call{method: uploadFile}, "1.2", false},
		{call{method: addReaction}, "1.2", false},
		{call{method: updateMessage}, "1.2", false},
	} {
		if _, ok := s.TakeOver(test.part, test.id); ok != test.want {
			t.Errorf("%+v, %q: %v", test.part, test.id, ok)
		}
	}
}

// All previews together keep to what Slack takes in a minute.
func TestPreviewEvery_ManyPreviews_Slower(t *testing.T) {
	previewTest(t, fake.Options{}, func(f *previewFixture) {
		if got := f.PreviewEvery(f.lane()); got != streamEvery {
			t.Errorf("the first: %s", got)
		}
		for i := range 10 {
			f.previews.add(fmt.Sprint(i, ".1"), &preview{in: store.Lane{ChatJID: fmt.Sprint("slack:C", i)}, isStream: i < 5, began: time.Now()})
		}
		if got, want := f.PreviewEvery(f.lane()), 5*appendShare; got != want {
			t.Errorf("with five streams: %s, want %s", got, want)
		}
		if got, want := f.PreviewEvery(store.Lane{ChatJID: "slack:C"}), 5*updateShare; got != want {
			t.Errorf("with five others: %s, want %s", got, want)
		}
		time.Sleep(previewIdle + time.Second) //nolint:forbidigo // in a bubble
		if got := f.PreviewEvery(f.lane()); got != streamEvery {
			t.Errorf("when they are idle: %s", got)
		}
	})
}

// What answers need to take previews over stays below Slack's limits.
func TestPreview_ManyInAMinute_Wait(t *testing.T) {
	previewTest(t, fake.Options{RateLimits: true}, func(f *previewFixture) {
		streams := 0
		for range maxBegun {
			ts := f.show(adapter.Preview{})
			if _, is := f.place.Stream(ts); is {
				streams++
			}
			if err := f.takes(ts, "final"); err != nil {
				f.t.Fatal(err)
			}
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		}
		if streams != maxStarted {
			f.t.Errorf("%d streams, want %d", streams, maxStarted)
		}
		_, err := f.try(adapter.Preview{})
		failure := &adapter.Failure{}
		if !errors.As(err, &failure) || failure.Class != msg.Rate || failure.After <= 0 || failure.After > time.Minute-maxBegun*time.Second {
			f.t.Fatalf("one more: %v, after %v", err, failure.After)
		}
		time.Sleep(failure.After) //nolint:forbidigo // in a bubble
		f.show(adapter.Preview{})
	})
}

// A question that takes a preview over has its buttons.
func TestTakeOver_Question_KeepsButtons(t *testing.T) {
	previewTest(t, fake.Options{}, func(f *previewFixture) {
		ts := f.show(adapter.Preview{})
		question := call{method: postMessage, channel: f.place.ChannelID, thread: f.place.ThreadTS, text: "Which?", buttons: []slackapi.Button{{Label: "this", Data: "1"}}}
		edit, _ := f.TakeOver(question, ts)
		if _, err := f.Send(f.t.Context(), &msg.Message{ID: 9, ChatJID: f.lane().ChatJID}, edit); err != nil {
			f.t.Fatal(err)
		}
		for _, m := range f.place.Messages() {
			if m.TS == ts && !strings.Contains(string(m.Blocks), `"this"`) {
				f.t.Errorf("it shows %s", m.Blocks)
			}
		}
	})
}

func TestTakeOver_ButtonRefused_IsShownWithout(t *testing.T) {
	previewTest(t, fake.Options{}, func(f *previewFixture) {
		f.place.ThreadTS = ""
		ts := f.show(adapter.Preview{})
		edit, _ := f.TakeOver(composer{}.Undo(call{method: postMessage, channel: f.place.ChannelID, text: "done"}, 5), ts)
		f.server.InjectFault(fake.Fault{Method: "chat.update", Error: "invalid_blocks"})
		if _, err := adaptertest.Send(f.t.Context(), f.Sender, &msg.Message{ID: 9, ChatJID: f.lane().ChatJID}, edit); err == nil || !strings.Contains(err.Error(), "without buttons") {
			f.t.Errorf("the remark is %v", err)
		}
		if got := f.text(ts); got != "done" {
			f.t.Errorf("it shows %q", got)
		}
		f.expectButton(ts, false)
	})
}

// While agents work in a thread Slack shows the button that stops them, after a crash no longer.
func TestSession_WhileAgentsWork(t *testing.T) {
	b := newMarksFixture(t)
	one := b.say()
	thread := b.Thread(one)
	in := store.Lane{ChatJID: b.chat(), ThreadID: one}
	end := b.works(one, one)
	for range 2 {
		if err := b.Type(t.Context(), in, true); err != nil {
			t.Error(err)
		}
	}
	calls := 0
	for _, c := range b.server.Calls() {
		if c.Method == "agents.sessions.setStatus" {
			calls++
		}
	}
	if thread.Session() != "processing" || calls != 1 {
		t.Errorf("the session is %q after %d calls", thread.Session(), calls)
	}
	if err := b.RemoveStaleMarks(t.Context()); err != nil || thread.Session() != "processing" {
		t.Errorf("while an agent works the sweep makes it %q, %v", thread.Session(), err)
	}
	end()
	b.Sender = &Sender{Identity: first, Log: slog.New(slog.DiscardHandler), API: b.API, Store: b.Store} // after a crash
	if err := b.RemoveStaleMarks(t.Context()); err != nil || thread.Session() != "active" {
		t.Errorf("after a crash it is %q, %v", thread.Session(), err)
	}
	if all, err := b.Store.DaemonCursors(t.Context(), "slakd", sessionPrefix); err != nil || len(all) > 0 {
		t.Errorf("recorded: %v, %v", all, err)
	}
	end = b.works(one, one)
	if err := b.Type(t.Context(), in, true); err != nil || thread.Session() != "processing" {
		t.Errorf("again: %q, %v", thread.Session(), err)
	}
	end()
	if err := b.Type(t.Context(), in, false); err != nil || thread.Session() != "active" {
		t.Errorf("in the end: %q, %v", thread.Session(), err)
	}
}

// An app that is no agent is asked once.
func TestSession_NoAgent_NotAsked(t *testing.T) {
	b := newMarksFixture(t)
	b.server.InjectFault(fake.Fault{Method: "agents.sessions.setStatus", Error: "not_an_agent", Times: -1})
	for range 3 {
		one := b.say()
		if err := b.Type(t.Context(), store.Lane{ChatJID: b.chat(), ThreadID: one}, true); err != nil {
			t.Error(err)
		}
	}
	calls := 0
	for _, c := range b.server.Calls() {
		if c.Method == "agents.sessions.setStatus" {
			calls++
		}
	}
	if all, err := b.Store.DaemonCursors(t.Context(), "slakd", sessionPrefix); err != nil || len(all) > 0 || calls != 1 {
		t.Errorf("%d calls; recorded: %v, %v", calls, all, err)
	}
}

func TestPreview_ButtonRefused_IsShownWithout(t *testing.T) {
	previewTest(t, fake.Options{}, func(f *previewFixture) {
		f.place.ThreadTS = ""
		ts := f.show(adapter.Preview{})
		f.server.InjectFault(fake.Fault{Method: "chat.update", Error: "invalid_blocks"})
		f.show(adapter.Preview{PlatformID: ts, Line: "Read…"})
		if got := f.text(ts); got != "⏳ Read…" {
			t.Errorf("it shows %q", got)
		}
		f.expectButton(ts, false)
	})
}
