package events

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"arizuko/pkg/msg"
	fake "arizuko/pkg/testkit/fakes/slack"
)

// namesFixture is a cache of names, the fake Slack that it asks, and a clock.
type namesFixture struct {
	*Names
	server *fake.Server
	time   time.Time
}

func newNamesFixture(t *testing.T, o fake.Options) *namesFixture {
	t.Helper()
	d := &namesFixture{server: fake.New(o), time: time.Unix(1_764_000_000, 0)}
	base, err := d.server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.server.Close() })
	d.Names = NewNames(slack.New(d.server.BotToken(), slack.OptionAPIURL(base+"/api/")), func() time.Time { return d.time })
	d.patience = time.Minute
	return d
}

// asked is how often Slack was asked.
func (d *namesFixture) asked() int { return len(d.server.Calls()) }

func TestNames_OfUsersAndChannels(t *testing.T) {
	d := newNamesFixture(t, fake.Options{})
	alice, bob, ci := d.server.User("Alice", "alice"), d.server.User("Bob", "bob"), d.server.OtherBot("CI", "ci")
	n := d.For(t.Context())
	for id, want := range map[string]string{alice.ID: "Alice", ci.ID: "CI", ci.BotID: "CI", "U404": "", "B404": "", "": ""} {
		if got := n.User(id); got != want {
			t.Errorf("%q is called %q, want %q", id, got, want)
		}
	}
	type chat struct {
		kind  msg.ChatKind
		title string
	}
	for id, want := range map[string]chat{
		d.server.Channel("team", alice).ChannelID:              {msg.ChatChannel, "#team"},
		d.server.LegacyPrivateChannel("hush", alice).ChannelID: {msg.ChatChannel, "#hush"},
		d.server.LegacyGroupDM(alice, bob).ChannelID:           {msg.ChatGroup, "mpdm-alice--bob-1"},
		d.server.GroupDM(alice, bob).ChannelID:                 {msg.ChatGroup, "mpdm-alice--bob-1"},
		d.server.DM(alice).ChannelID:                           {msg.ChatDM, "Alice"},
		"C404":                                                 {"", ""},
	} {
		if kind, title := n.Chat(id); kind != want.kind || title != want.title {
			t.Errorf("%s is a %q called %q, want %+v", id, kind, title, want)
		}
	}
}

func TestNames_AreCachedUntilTheyExpireOrChange(t *testing.T) {
	d := newNamesFixture(t, fake.Options{})
	alice := d.server.User("Alice", "alice")
	expect := func(name string, asked int) {
		t.Helper()
		if got := d.For(t.Context()).User(alice.ID); got != name || d.asked() != asked {
			t.Errorf("called %q after %d lookups, want %q after %d", got, d.asked(), name, asked)
		}
	}
	expect("Alice", 1)
	d.time = d.time.Add(nameLifetime - time.Second)
	expect("Alice", 1)
	d.server.RenameUser(alice, "Alicia")
	expect("Alice", 1)
	d.Forget(alice.ID)
	expect("Alicia", 2)
	d.time = d.time.Add(nameLifetime + time.Second)
	d.server.InjectFault(fake.Fault{Method: "users.info", Status: 503, Times: -1})
	expect("Alicia", 3) // the old name is better than none
	d.time = d.time.Add(failureLifetime / 2)
	expect("Alicia", 3)
	d.time = d.time.Add(failureLifetime)
	d.server.ClearFaults()
	expect("Alicia", 4)
}

// The failure is cached as well.
func TestNames_SlowAnswer_TimesOut(t *testing.T) {
	d := newNamesFixture(t, fake.Options{})
	alice := d.server.User("Alice", "alice")
	d.patience = 0
	d.server.InjectFault(fake.Fault{Method: "users.info", Delay: time.Hour})
	for range 2 {
		if got := d.For(t.Context()).User(alice.ID); got != "" {
			t.Errorf("called %q", got)
		}
	}
}

func TestNames_FullCache_IsCleared(t *testing.T) {
	d := newNamesFixture(t, fake.Options{})
	for i := range maxNames {
		d.known[string(rune(i))] = named{until: d.time.Add(time.Hour)}
	}
	d.For(t.Context()).User(d.server.User("Alice", "alice").ID)
	if len(d.known) != 1 {
		t.Errorf("%d names are cached", len(d.known))
	}
	if methods := d.server.Calls(); !slices.ContainsFunc(methods, func(c fake.Call) bool { return c.Method == "users.info" }) {
		t.Error("Slack was not asked")
	}
}

func TestNames_OneEvent_LimitsLookups(t *testing.T) {
	d := newNamesFixture(t, fake.Options{})
	alice := d.server.User("Alice", "alice")
	n := d.For(t.Context())
	for i := range 10 * maxLookups {
		n.User(fmt.Sprint("U", i))
	}
	if got := n.User(alice.ID); got != "" || d.asked() != maxLookups {
		t.Errorf("%q after %d lookups", got, d.asked())
	}
	if got := d.For(t.Context()).User(alice.ID); got != "Alice" {
		t.Errorf("in the next event she is %q", got)
	}
}

// A method that was refused for its rate is not called again, for other users neither, until Slack allows it.
func TestNames_RateLimit_HoldsForTheMethod(t *testing.T) {
	d := newNamesFixture(t, fake.Options{})
	alice, bob := d.server.User("Alice", "alice"), d.server.User("Bob", "bob")
	team := d.server.Channel("team", alice).ChannelID
	d.server.InjectFault(fake.Fault{Method: "users.info", RetryAfter: 20})
	for _, id := range []string{alice.ID, bob.ID, alice.ID} {
		if got := d.For(t.Context()).User(id); got != "" {
			t.Errorf("%s is called %q", id, got)
		}
	}
	if _, title := d.For(t.Context()).Chat(team); title != "#team" || d.asked() != 2 {
		t.Errorf("the channel is called %q after %d lookups", title, d.asked())
	}
	d.time = d.time.Add(21 * time.Second)
	if got := []string{d.For(t.Context()).User(alice.ID), d.For(t.Context()).User(bob.ID)}; !slices.Equal(got, []string{"Alice", "Bob"}) {
		t.Errorf("after the wait they are called %q", got)
	}
}
