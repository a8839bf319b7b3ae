package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/foreign"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/testkit/fakes/telegram"
)

// diary is a world in which all that is done is written down.
type diary struct {
	chatsim.Platform
	acts []chatsim.Action
	ids  []string // of what was written, beside acts
}

func (d *diary) Do(a chatsim.Action) (id string, err error) {
	id, err = d.Platform.Do(a)
	d.acts, d.ids = append(d.acts, a), append(d.ids, id)
	return id, err
}

// newDiary has people in Telegram, who nobody answers.
func newDiary() *diary { return &diary{Platform: chatsim.NewTelegram(crowded, telegram.Options{})} }

// acts are what people of a crowd did in their world.
func acts(c *crowd) []chatsim.Action { return c.worlds["telegram"].(*diary).acts }

// people is a crowd whose web chats nobody takes from.
func people(t *testing.T, seed uint64) *crowd {
	t.Helper()
	a, err := foreign.Open(filepath.Dir(storetest.Path(t)), func(string, error) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return newCrowd(seeded(seed), []chatsim.Platform{newDiary()}, nil, &foreignChat{adapter: a})
}

// speaks has a crowd say n things.
func speaks(t *testing.T, c *crowd, n int) {
	t.Helper()
	for range n {
		c.speak(t.Context())
	}
	if err := c.failure.get(); err != nil {
		t.Fatal(err)
	}
}

// words is how much the crowds of the tests say: enough for all they can do.
const words = 1500

func TestNoTwoTextsAreAlike(t *testing.T) {
	c := people(t, 1)
	c.hostile = true
	speaks(t, c, words)
	contents, told := map[string]bool{}, map[string]bool{}
	for _, s := range c.all {
		if contents[s.content] || told[s.told] {
			t.Errorf("%q was written before", s.content)
		}
		contents[s.content], told[s.told] = true, s.told != ""
		if !strings.HasSuffix(s.content, s.told) {
			t.Errorf("%q is to be told as %q", s.content, s.told)
		}
		if !slices.ContainsFunc(slices.Concat(c.sober...), func(p chatsim.Conversation) bool { return p.Chat == s.chat }) {
			t.Errorf("%q was written in %s", s.content, s.chat)
		}
	}
	for _, a := range acts(c) {
		if a.Mutates && contents[a.Text] {
			t.Errorf("%q was written in %s as well", a.Text, a.Chat)
		}
	}
}

func TestTheSeedMakesTheCrowd(t *testing.T) {
	one, same, other := people(t, 1), people(t, 1), people(t, 2)
	for _, c := range []*crowd{one, same, other} {
		speaks(t, c, words)
	}
	everything := cmp.AllowUnexported(said{}, webMessage{})
	if diff := cmp.Diff(one.all, same.all, everything); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(acts(one), acts(same)); diff != "" {
		t.Error(diff)
	}
	for chat, p := range one.posts {
		if diff := cmp.Diff(p.queue, same.posts[chat].queue); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff(channelled(one), channelled(same)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(one.all, other.all, everything) {
		t.Error("two seeds make one crowd")
	}
}

// channelled is what people wrote where the adapter is a foreign one.
func channelled(c *crowd) (all []string) {
	for _, s := range c.all {
		if s.chat == channel {
			all = append(all, s.content)
		}
	}
	return all
}

func TestEverythingIsWrittenWhereItIsSaidToBe(t *testing.T) {
	c := people(t, 1)
	speaks(t, c, words)
	written := map[key]int{}
	for _, a := range acts(c) {
		written[key{a.Chat, a.Text}]++
	}
	clients := map[string]bool{}
	for chat, p := range c.posts {
		for _, m := range p.queue {
			written[key{chat, m.Text}]++
			if clients[m.ClientID] {
				t.Errorf("%s stands for two messages", m.ClientID)
			}
			clients[m.ClientID] = true
		}
	}
	in := map[string]int{}
	for _, s := range c.all {
		in[s.chat]++
		if n := written[key{s.chat, s.content}]; n != 1 && s.chat != channel {
			t.Errorf("%q was written %d times in %s", s.content, n, s.chat)
		}
	}
	for _, p := range slices.Concat(c.sober...) {
		if in[p.Chat] == 0 {
			t.Errorf("nobody writes in %s", p.Chat)
		}
	}
}

func TestPeopleDoAllTheyCan(t *testing.T) {
	c := people(t, 1)
	c.hostile = true
	speaks(t, c, 3*words)
	seen := map[string]bool{}
	note := func(verb, text string) {
		seen[verb] = true
		for _, word := range regexp.MustCompile(`^[#/@]\S*|\b(slow|frames|silent|crash|error)\b`).FindAllString(text, -1) {
			seen[word] = true
		}
	}
	for _, a := range acts(c) {
		note(a.Verb, a.Text)
		if (a.Verb == msg.VerbEdit || a.Verb == msg.VerbDelete || a.Verb == msg.VerbReaction) && !a.Mutates {
			t.Errorf("a %s in %s changes what must become of its messages", a.Verb, a.Chat)
		}
	}
	for _, want := range []string{
		"message", "mention", "edit", "delete", "reaction", "#task", "#pinned", "#", "@eng", "@", "/new", "/ping", "/stop",
		"slow", "frames", "silent", "crash", "error",
	} {
		if !seen[want] {
			t.Errorf("nobody does %s", want)
		}
	}
}

func TestOnlyHostilePeopleMakeAgentsFail(t *testing.T) {
	c := people(t, 1)
	for range 10 * words {
		if text := c.text(); strings.Contains(text, "crash") || strings.Contains(text, "error") {
			t.Fatalf("somebody writes %q", text)
		}
	}
}

func TestWhatIsSureToBeAnswered(t *testing.T) {
	c := people(t, 1)
	speaks(t, c, 3*words)
	verbs := map[string]string{}
	for _, a := range acts(c) {
		verbs[a.Text] = a.Verb
	}
	childless := map[string]bool{}
	for _, p := range slices.Concat(c.sober...) {
		childless[p.Chat] = p.NoChildGroup
	}
	sure := map[bool]int{}
	for _, s := range c.all {
		called := strings.ContainsAny(s.content[:1], "#@/")
		called = called || verbs[s.content] == msg.VerbMention
		group := strings.HasPrefix(s.chat, "telegram:-")
		if s.chat != channel && s.sure != (called || !group) {
			t.Errorf("%q in %s is sure of an answer: %t", s.content, s.chat, s.sure)
		}
		if childless[s.chat] && strings.HasPrefix(s.content, "@") {
			t.Errorf("%q in %s calls a child that is not there", s.content, s.chat)
		}
		if s.told == "" != strings.HasPrefix(s.content, "/ping ") {
			t.Errorf("%q is to be told as %q", s.content, s.told)
		}
		sure[s.sure]++
	}
	if sure[true] == 0 || sure[false] == 0 {
		t.Errorf("sure and not: %v", sure)
	}
}

func TestChangesNameTheLastMessageOfTheirPlace(t *testing.T) {
	c := people(t, 1)
	speaks(t, c, 2*words)
	d := c.worlds["telegram"].(*diary)
	last := map[string]string{}
	changes := 0
	for i, a := range d.acts {
		switch {
		case !a.Mutates:
		case a.Verb == msg.VerbMessage:
			last[a.Chat] = d.ids[i]
		default:
			changes++
			if a.Target == "" || a.Target != last[a.Chat] {
				t.Errorf("%s in %s is about %q, want %q", a.Verb, a.Chat, a.Target, last[a.Chat])
			}
		}
	}
	if changes == 0 {
		t.Error("nobody changes anything")
	}
}

func TestProvoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for point, want := range map[failpoint.Point][]string{
			failpoint.ChangeContent.Before(): {"message slow 1 ", "edit"},
			failpoint.ChangeContent.After():  {"message slow 1 ", "edit"},
			failpoint.Pin.Before():           {"message #pinned"},
			failpoint.Pin.After():            {"message #pinned"},
			failpoint.CancelTurn.Before():    {"message slow 1 ", "message /stop"},
			failpoint.CancelTurn.After():     {"message slow 1 ", "message /stop"},
			failpoint.ResetSession.Before():  {"message /new "},
			failpoint.RequeueTurn.Before():   {"message @", "message @", "message slow 1 ", "message /stop"},
			failpoint.TakeSystem.After():     {"message /new "},
			failpoint.Piping:                 {"message slow 1 ", "message m"},
			failpoint.OfferTurn.Before():     {"message slow 1 ", "message m"},
			failpoint.Framed:                 nil,
		} {
			d := newDiary()
			c := newCrowd(seeded(1), []chatsim.Platform{d}, nil, nil)
			c.fussy = slices.DeleteFunc(c.fussy, func(p chatsim.Conversation) bool { return p.Chat == "matrix:dm-1" })
			c.provoke(t.Context(), point)
			var got []string
			for _, a := range d.acts {
				got = append(got, summary(a, d.ids[0]))
			}
			if !slices.Equal(got, want) {
				t.Errorf("for %s people do %q, want %q", point, got, want)
			}
		}
	})
}

// summary is what is done, with how its text begins unless it is about the first message.
func summary(a chatsim.Action, first string) string {
	if a.Target != "" && a.Target == first {
		return a.Verb
	}
	begin := regexp.MustCompile(`^(slow 1 |/new |m|\S*)`).FindString(a.Text)
	return a.Verb + " " + begin
}

// chats stands for dashd, which is down at first, and takes a message at the next try.
type chats struct {
	mu    sync.Mutex
	tries int
	taken []string
}

func (d *chats) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m, err := httpx.Decode[webMessage](r)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tries++
	if err != nil || d.tries%2 == 1 {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	d.taken = append(d.taken, r.Method+" "+r.URL.Path+" "+m.Text+" "+m.Topic+" "+m.ClientID)
}

// silence is a world in which nothing happens, or something did that is not confirmed.
type silence struct {
	chatsim.Platform
	broken bool
}

func (s *silence) Info() chatsim.Info                    { return chatsim.Info{Platform: "telegram"} }
func (s *silence) Conversations() []chatsim.Conversation { return nil }
func (s *silence) AllAcknowledged() bool                 { return !s.broken }

func TestPostersTryAgainInOrder(t *testing.T) {
	d := &chats{}
	server := httptest.NewServer(d)
	defer server.Close()
	c := newCrowd(seeded(1), []chatsim.Platform{&silence{}}, httpx.NewClient(server.URL, ""), nil)
	if len(c.posts) != 2 {
		t.Fatalf("people write in %d web chats", len(c.posts))
	}
	for _, text := range []string{"m1", "m2", "m3"} {
		c.write(t.Context(), chatsim.Conversation{Chat: "web:main", Topic: "#side"}, text, msg.VerbMessage)
	}
	if c.quiet() {
		t.Error("it is quiet before anything is taken")
	}
	p := c.posts["web:main"]
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { p.run(ctx) })
	waiting, cancel := context.WithTimeout(ctx, readyMost)
	defer cancel()
	err := harness.Await(waiting, "everything to be taken", func() (bool, error) { return p.quiet(), nil })
	stop()
	running.Wait()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"POST /chat/main/messages m1 #side 1", "POST /chat/main/messages m2 #side 2", "POST /chat/main/messages m3 #side 3"}
	if diff := cmp.Diff(want, d.taken); diff != "" {
		t.Error(diff)
	}
	if !c.quiet() {
		t.Error("it is not quiet behind that")
	}
	c.worlds["telegram"].(*silence).broken = true
	if c.quiet() {
		t.Error("it is quiet though something is not confirmed")
	}
}
