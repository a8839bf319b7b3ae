package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/foreign"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/testkit/fakes/slack"
	"arizuko/pkg/testkit/fakes/telegram"
)

// recorder is a platform that records its actions.
type recorder struct {
	chatsim.Platform
	actions []chatsim.Action
	ids     []string // of the messages that the actions made
}

func (r *recorder) Do(a chatsim.Action) (id string, err error) {
	id, err = r.Platform.Do(a)
	r.actions, r.ids = append(r.actions, a), append(r.ids, id)
	return id, err
}

// newRecorder returns a Telegram without an adapter.
func newRecorder() *recorder {
	return &recorder{Platform: chatsim.NewTelegram(platformSize, telegram.Options{})}
}

// actionsOf returns what the users of a generator did on its platform.
func actionsOf(g *generator) []chatsim.Action { return g.platforms["telegram"].(*recorder).actions }

// recordedGenerator returns a generator on a recorder, without dashd.
func recordedGenerator(t *testing.T, seed uint64) *generator {
	t.Helper()
	a, err := foreign.Open(storetest.File(t), t.TempDir(), func(string, error) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return newGenerator(seeded(seed), []chatsim.Platform{newRecorder()}, nil, nil, &foreignChat{adapter: a})
}

// generate performs n actions.
func generate(t *testing.T, g *generator, n int) {
	t.Helper()
	for range n {
		g.act(t.Context())
	}
	if err := g.failure.get(); err != nil {
		t.Fatal(err)
	}
}

// enoughActions is a number of actions that covers every kind.
const enoughActions = 1500

func TestGenerator_Texts_AreUnique(t *testing.T) {
	g := recordedGenerator(t, 1)
	g.hostile = true
	generate(t, g, enoughActions)
	contents, prompts := map[string]bool{}, map[string]bool{}
	for _, s := range g.all {
		if contents[s.content] || prompts[s.prompt] {
			t.Errorf("%q was sent before", s.content)
		}
		contents[s.content], prompts[s.prompt] = true, s.prompt != ""
		if !strings.HasSuffix(s.content, s.prompt) {
			t.Errorf("%q has prompt %q", s.content, s.prompt)
		}
		if !slices.ContainsFunc(slices.Concat(g.tracked...), func(c chatsim.Conversation) bool { return c.Chat == s.chat }) {
			t.Errorf("%q was sent to %s", s.content, s.chat)
		}
	}
	for _, a := range actionsOf(g) {
		if a.Mutates && contents[a.Text] {
			t.Errorf("%q was also sent to %s", a.Text, a.Chat)
		}
	}
}

func TestGenerator_DependsOnSeed(t *testing.T) {
	one, same, other := recordedGenerator(t, 1), recordedGenerator(t, 1), recordedGenerator(t, 2)
	for _, g := range []*generator{one, same, other} {
		generate(t, g, enoughActions)
	}
	everything := cmp.AllowUnexported(sentMessage{}, webMessage{})
	if diff := cmp.Diff(one.all, same.all, everything); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(actionsOf(one), actionsOf(same)); diff != "" {
		t.Error(diff)
	}
	for chat, sender := range one.web {
		if diff := cmp.Diff(sender.queue, same.web[chat].queue); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff(inForeignChannel(one), inForeignChannel(same)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(one.all, other.all, everything) {
		t.Error("different seeds send the same messages")
	}
}

// inForeignChannel returns the messages sent to the foreign adapter's channel.
func inForeignChannel(g *generator) (all []string) {
	for _, s := range g.all {
		if s.chat == foreignChannel {
			all = append(all, s.content)
		}
	}
	return all
}

func TestGenerator_SendsMessageToItsChat(t *testing.T) {
	g := recordedGenerator(t, 1)
	generate(t, g, enoughActions)
	written := map[key]int{}
	for _, a := range actionsOf(g) {
		written[key{a.Chat, a.Text}]++
	}
	clients := map[string]bool{}
	for chat, sender := range g.web {
		for _, m := range sender.queue {
			written[key{chat, m.Text}]++
			if clients[m.ClientID] {
				t.Errorf("client id %s has two messages", m.ClientID)
			}
			clients[m.ClientID] = true
		}
	}
	in := map[string]int{}
	for _, s := range g.all {
		in[s.chat]++
		if n := written[key{s.chat, s.content}]; n != 1 && s.chat != foreignChannel {
			t.Errorf("%q was sent %d times to %s", s.content, n, s.chat)
		}
	}
	for _, c := range slices.Concat(g.tracked...) {
		if in[c.Chat] == 0 {
			t.Errorf("no message in %s", c.Chat)
		}
	}
}

func TestGenerator_PerformsEveryAction(t *testing.T) {
	g := recordedGenerator(t, 1)
	g.hostile = true
	generate(t, g, 3*enoughActions)
	seen := map[string]bool{}
	note := func(verb, text string) {
		seen[verb] = true
		for _, word := range regexp.MustCompile(`^[#/@]\S*|\b(slow|frames|work|stream|silent|crash|error)\b`).FindAllString(text, -1) {
			seen[word] = true
		}
	}
	for _, a := range actionsOf(g) {
		note(a.Verb, a.Text)
		if (a.Verb == msg.VerbEdit || a.Verb == msg.VerbDelete || a.Verb == msg.VerbReaction) && !a.Mutates {
			t.Errorf("%s in tracked chat %s", a.Verb, a.Chat)
		}
	}
	for _, want := range []string{
		"message", "mention", "edit", "delete", "reaction", "#task", "#pinned", "#", "@eng", "@", "/new", "/ping", "/stop",
		"slow", "frames", "work", "stream", "silent", "crash", "error",
	} {
		if !seen[want] {
			t.Errorf("%s never happens", want)
		}
	}
}

// Slack's clients send no text that begins with a slash.
func TestGenerator_Slack_TakesAllActions(t *testing.T) {
	g := newGenerator(seeded(1), []chatsim.Platform{chatsim.NewSlack(platformSize, slack.Options{})}, nil, nil, nil)
	g.leaveOutForeign(nil)
	g.tracked = g.tracked[1:] // not the web chats
	generate(t, g, enoughActions)
}

// Commands above a sender's limit would be dropped with a notice, which is no loss.
func TestGenerator_Commands_StayBelowTheLimit(t *testing.T) {
	g := recordedGenerator(t, 1)
	begin, allowed := time.Unix(1e9, 0), 0
	for second := range 120 {
		if g.mayCommand("telegram:1", begin.Add(time.Duration(second)*time.Second)) {
			allowed++
		}
	}
	if allowed != 2*maxCommands || !g.mayCommand("telegram:2", begin) {
		t.Errorf("%d commands in two minutes", allowed)
	}
}

func TestGenerator_MustAnswer_WhenCalled(t *testing.T) {
	g := recordedGenerator(t, 1)
	generate(t, g, 3*enoughActions)
	verbs := map[string]string{}
	for _, a := range actionsOf(g) {
		verbs[a.Text] = a.Verb
	}
	noChild := map[string]bool{}
	for _, c := range slices.Concat(g.tracked...) {
		noChild[c.Chat] = c.NoChildGroup
	}
	count := map[bool]int{}
	for _, s := range g.all {
		called := strings.ContainsAny(s.content[:1], "#@/")
		called = called || verbs[s.content] == msg.VerbMention
		group := strings.HasPrefix(s.chat, "telegram:-")
		if s.chat != foreignChannel && s.mustAnswer != (called || !group) {
			t.Errorf("%q in %s: mustAnswer is %t", s.content, s.chat, s.mustAnswer)
		}
		if noChild[s.chat] && strings.HasPrefix(s.content, "@") {
			t.Errorf("%q in %s calls a missing child", s.content, s.chat)
		}
		if s.prompt == "" != strings.HasPrefix(s.content, "/ping ") {
			t.Errorf("%q has prompt %q", s.content, s.prompt)
		}
		count[s.mustAnswer]++
	}
	if count[true] == 0 || count[false] == 0 {
		t.Errorf("must be answered or not: %v", count)
	}
}

func TestGenerator_Mutate_TargetsLastMessage(t *testing.T) {
	g := recordedGenerator(t, 1)
	generate(t, g, 2*enoughActions)
	d := g.platforms["telegram"].(*recorder)
	last := map[string]string{}
	changes := 0
	for i, a := range d.actions {
		switch {
		case !a.Mutates:
		case a.Verb == msg.VerbMessage:
			last[a.Chat] = d.ids[i]
		default:
			changes++
			if a.Target == "" || a.Target != last[a.Chat] {
				t.Errorf("%s in %s targets %q, want %q", a.Verb, a.Chat, a.Target, last[a.Chat])
			}
		}
	}
	if changes == 0 {
		t.Error("no message is changed")
	}
}

// fakeDashd fails the first try of each message.
type fakeDashd struct {
	mu       sync.Mutex
	tries    int
	accepted []string
}

func (d *fakeDashd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m, err := httpx.Decode[webMessage](r)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tries++
	if err != nil || d.tries%2 == 1 {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	d.accepted = append(d.accepted, r.Method+" "+r.URL.Path+" "+m.Text+" "+m.Topic+" "+m.ClientID)
}

// emptyPlatform has no conversations.
type emptyPlatform struct {
	chatsim.Platform
	unacknowledged bool
}

func (p *emptyPlatform) Info() chatsim.Info                    { return chatsim.Info{Platform: "telegram"} }
func (p *emptyPlatform) Conversations() []chatsim.Conversation { return nil }
func (p *emptyPlatform) AllAcknowledged() bool                 { return !p.unacknowledged }

func TestWebSender_Retries_InOrder(t *testing.T) {
	d := &fakeDashd{}
	server := httptest.NewServer(d)
	defer server.Close()
	g := newGenerator(seeded(1), []chatsim.Platform{&emptyPlatform{}}, nil, httpx.NewClient("dashd", server.URL, ""), nil)
	if len(g.web) != 2 {
		t.Fatalf("%d web chats, want 2", len(g.web))
	}
	for _, text := range []string{"m1", "m2", "m3"} {
		g.sendText(t.Context(), chatsim.Conversation{Chat: "web:main", Topic: "#side"}, text, msg.VerbMessage)
	}
	if g.allAcknowledged() {
		t.Error("all acknowledged before dashd accepts anything")
	}
	sender := g.web["web:main"]
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { sender.run(ctx) })
	waiting, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	err := harness.Await(waiting, "dashd to accept all messages", func() (bool, error) { return sender.idle(), nil })
	stop()
	running.Wait()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"POST /chat/main/messages m1 #side 1", "POST /chat/main/messages m2 #side 2", "POST /chat/main/messages m3 #side 3"}
	if diff := cmp.Diff(want, d.accepted); diff != "" {
		t.Error(diff)
	}
	if !g.allAcknowledged() {
		t.Error("not all acknowledged after dashd accepted everything")
	}
	g.platforms["telegram"].(*emptyPlatform).unacknowledged = true
	if g.allAcknowledged() {
		t.Error("all acknowledged despite an unacknowledged event")
	}
}
