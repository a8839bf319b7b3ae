package main

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	fake "arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/need"
)

// asked counts the calls of a route about a place.
func (r *harness) asked(route string, p fake.Place) (n int) {
	for _, c := range r.discord.Calls() {
		if c.Route == route && c.ChannelID == p.ChannelID {
			n++
		}
	}
	return n
}

// refused counts the calls that Discord refused with 403.
func (r *harness) refused() (n int) {
	for _, c := range r.discord.Calls() {
		if c.Status == 403 {
			n++
		}
	}
	return n
}

// A live message is stored while the missed ones of other channels are read. In its own channel it comes after them.
func TestBackfill_LiveMessages_DoNotWaitForOtherChannels(t *testing.T) {
	r := newHarness(t, fake.Options{})
	busy := r.guild.Channel("busy")
	stop := r.connect()
	busy.Say(r.alice, "before")
	r.general.Say(r.alice, "before")
	r.expect("message: before [#busy]", "message: before [#general]")
	stop()
	busy.Say(r.alice, "missed")
	held := make(chan struct{})
	r.discord.InjectFault(fake.Fault{Route: fake.GetMessages, Held: held})
	r.connect()
	r.Until("the call", func() bool { return r.discord.Listening() })
	busy.Say(r.alice, "live")
	r.general.Say(r.alice, "live")
	r.expect("message: before [#busy]", "message: before [#general]", "message: live [#general]")
	close(held)
	r.expect("message: before [#busy]", "message: before [#general]", "message: live [#general]", "message: missed [#busy]", "message: live [#busy]")
}

// The events of a channel whose missed messages cannot be read wait for a while, and are then stored before those.
func TestBackfill_ChannelFailsForLong_LiveMessagesPass(t *testing.T) {
	need.Verify(t)
	if testing.Short() {
		t.Skip("waits ten seconds")
	}
	t.Parallel()
	r := newHarness(t, fake.Options{})
	stop := r.connect()
	r.general.Say(r.alice, "before")
	r.expect("message: before [#general]")
	stop()
	r.general.Say(r.alice, "missed")
	r.discord.InjectFault(fake.Fault{Route: fake.GetMessages, Status: 500, Times: -1})
	stop = r.connect()
	live := r.general.Say(r.alice, "live")
	r.general.React(r.alice, live.ID, "👍")
	r.expect("message: before [#general]", "message: live [#general]", "reaction: 👍 [#general]")
	stop() // the gap stays
	r.discord.ClearFaults()
	r.connect()
	r.expect("message: before [#general]", "message: live [#general]", "reaction: 👍 [#general]", "message: missed [#general]")
}

// Wherever discd ends while it reads missed messages, it goes on there.
func TestBackfill_Stopped_GoesOnAfterRestart(t *testing.T) {
	r := newHarness(t, fake.Options{})
	stop := r.connect()
	r.general.Say(r.alice, "before")
	r.expect("message: before [#general]")
	stop()
	want := []string{"message: before [#general]"}
	for i := range 320 {
		r.general.Say(r.alice, fmt.Sprint(i))
		want = append(want, fmt.Sprintf("message: %d [#general]", i))
	}
	for pages := 1; pages <= 3; pages++ {
		// The page after this one does not come before discd stops.
		r.discord.InjectFault(fake.Fault{Route: fake.GetMessages}, fake.Fault{Route: fake.GetMessages, Delay: time.Minute})
		stop = r.connect()
		r.general.Say(r.alice, fmt.Sprint("live ", pages))
		want = append(want, fmt.Sprintf("message: live %d [#general]", pages))
		r.Until("a page", func() bool { return len(r.stored()) == 1+100*pages })
		stop()
		r.discord.ClearFaults()
	}
	r.connect()
	r.expect(want...)
}

// Channels that the bot may not see, or whose history it may not read, cost no call, however often discd starts.
func TestBackfill_HiddenChannels_CostNothing(t *testing.T) {
	r := newHarness(t, fake.Options{})
	var hidden []fake.Place
	for i := range 20 {
		p := r.guild.Channel(fmt.Sprint("hidden", i))
		p.Say(r.alice, "x")
		if p.Deny(fake.ViewChannel); i%2 == 0 {
			p.Deny(fake.ReadMessageHistory)
		}
		hidden = append(hidden, p)
	}
	for round := range 3 {
		stop := r.connect()
		r.general.Say(r.alice, fmt.Sprint("live ", round))
		r.Until("the row", func() bool { return strings.Contains(strings.Join(r.stored(), "\n"), fmt.Sprint("live ", round)) })
		stop()
		for _, p := range hidden[1:] {
			p.Say(r.alice, "missed")
		}
	}
	for _, p := range hidden {
		if n := r.asked(fake.GetMessages, p); n > 0 {
			t.Fatalf("%d calls for a hidden channel", n)
		}
	}
	if n := r.refused(); n > 0 {
		t.Errorf("%d calls were refused", n)
	}
	r.connect()
	hidden[1].Deny(0)
	r.Until("what was missed there", func() bool { return r.Text(`SELECT count(*) FROM messages WHERE content = 'missed'`) == "3" })
}

func TestBackfill_OlderThanMaxAge_IsNotRead(t *testing.T) {
	var ago atomic.Int64
	ago.Store(int64(3 * time.Hour))
	r := newHarness(t, fake.Options{Now: func() time.Time { return time.Now().Add(-time.Duration(ago.Load())) }}, "MAX_AGE=1h")
	dm := r.discord.DM(r.alice)
	stop := r.connect()
	r.general.Say(r.alice, "before")
	dm.Say(r.alice, "before")
	r.expect("message: before [#general]", "message: before [Alice]")
	stop()
	ago.Store(int64(2 * time.Hour))
	r.general.Say(r.alice, "too old")
	dm.Say(r.alice, "too old")
	ago.Store(int64(time.Minute))
	r.general.Say(r.alice, "missed")
	dm.Say(r.alice, "missed")
	r.connect()
	r.Until("the rows", func() bool { return len(r.stored()) >= 4 })
	want := []string{"message: before [#general]", "message: missed [#general]", "message: before [Alice]", "message: missed [Alice]"}
	if diff := cmp.Diff(byPlace(want), byPlace(r.stored())); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if n := strings.Count(r.Log.String(), "older than MAX_AGE"); n != 2 {
		t.Errorf("said %d times:\n%s", n, r.Log.String())
	}
}

// Threads that were used and archived while discd was down, whether or not it knew them, and one of them in use again.
func TestBackfill_ArchivedThreads_AreRead(t *testing.T) {
	r := newHarness(t, fake.Options{})
	forum := r.guild.Forum("help")
	stop := r.connect()
	soup, salad := r.general.Thread(r.alice, "soup"), r.general.Thread(r.alice, "salad")
	post := forum.OpenPost(r.alice, "pan", "what now?")
	for _, p := range []fake.Place{soup, salad, post} {
		p.Say(r.alice, "before")
	}
	before := []string{
		"message: what now? [#help / pan]", "message: before [#general / soup]", "message: before [#general / salad]", "message: before [#help / pan]",
	}
	r.expect(before...)
	stop()
	fresh := r.general.Thread(r.alice, "bread")
	for _, p := range []fake.Place{soup, post, fresh, salad} {
		p.Say(r.alice, "missed")
		p.Archive(true, false)
	}
	r.discord.InjectFault(fake.Fault{Route: fake.ListArchivedThreads, Delay: time.Minute, Times: -1})
	stop = r.connect()
	salad.Say(r.alice, "live")
	after := []string{"message: missed [#general / salad]", "message: live [#general / salad]"}
	r.expect(append(before, after...)...)
	stop() // the archive is not read yet
	r.discord.ClearFaults()
	r.connect()
	r.Until("the rows", func() bool { return len(r.stored()) >= 9 })
	got := r.stored()[6:]
	slices.Sort(got)
	if diff := cmp.Diff([]string{"message: missed [#general / bread]", "message: missed [#general / soup]", "message: missed [#help / pan]"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Until("the end of the search", func() bool { return r.Text(`SELECT count(*) FROM cursors WHERE key LIKE 'archive:%'`) == "0" })
}

// Private threads in which the bot is, whether or not it knew them. Those made before the oldest that it knew, or
// before MAX_AGE, are not looked for.
func TestBackfill_ArchivedPrivateThreads_AreRead(t *testing.T) {
	var ago atomic.Int64
	ago.Store(int64(2 * time.Hour))
	r := newHarness(t, fake.Options{Now: func() time.Time { return time.Now().Add(-time.Duration(ago.Load())) }}, "MAX_AGE=1h")
	private := func(name string) fake.Place {
		p := r.general.PrivateThread(r.alice, name)
		p.AddToThread(r.discord.Me())
		return p
	}
	for i := range 130 {
		private(fmt.Sprint("old ", i)).Archive(true, false)
	}
	known := private("known")
	for i := range 60 {
		private(fmt.Sprint("younger ", i)).Archive(true, false)
	}
	ago.Store(0)
	stop := r.connect()
	known.Say(r.alice, "before")
	r.expect("message: before [#general / known]")
	stop()
	known.Say(r.alice, "missed")
	known.Archive(true, false)
	for i := range 50 { // with the younger ones they fill the first page
		private(fmt.Sprint("new ", i)).Archive(true, false)
	}
	fresh, foreign := private("fresh"), r.general.PrivateThread(r.alice, "foreign")
	for _, p := range []fake.Place{fresh, foreign} {
		p.Say(r.alice, "missed")
		p.Archive(true, false)
	}
	r.connect()
	r.Until("the rows", func() bool { return len(r.stored()) >= 3 })
	got := r.stored()[1:]
	slices.Sort(got)
	if diff := cmp.Diff([]string{"message: missed [#general / fresh]", "message: missed [#general / known]"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Until("the end of the search", func() bool { return r.Text(`SELECT count(*) FROM cursors WHERE key LIKE 'archive:%'`) == "0" })
	if n := r.asked(fake.ListJoinedArchivedThreads, r.general); n != 2 {
		t.Errorf("%d pages of private threads, want 2", n)
	}
	if n := r.refused(); n > 0 {
		t.Errorf("%d calls were refused", n)
	}
}

// Private chats that were quiet for long are not read, and their bookmarks are removed.
func TestBackfill_QuietPrivateChats_AreForgotten(t *testing.T) {
	r := newHarness(t, fake.Options{})
	dm := r.discord.DM(r.alice)
	stop := r.connect()
	dm.Say(r.alice, "before")
	r.expect("message: before [Alice]")
	stop()
	r.Exec(`UPDATE cursors SET value = '400' WHERE key LIKE 'last:dm-%'`)
	r.connect()
	r.general.Say(r.alice, "live")
	r.expect("message: before [Alice]", "message: live [#general]")
	if n := r.asked(fake.GetMessages, dm); n > 0 || r.Text(`SELECT count(*) FROM cursors WHERE key LIKE 'last:dm-%'`) != "0" {
		t.Errorf("%d calls", n)
	}
}

// A private chat that Discord did not show once is asked for again after a message in it.
func TestBackfill_PrivateChatRefused_IsReadAfterItsNextMessage(t *testing.T) {
	r := newHarness(t, fake.Options{})
	dm := r.discord.DM(r.alice)
	stop := r.connect()
	dm.Say(r.alice, "before")
	r.expect("message: before [Alice]")
	stop()
	r.discord.InjectFault(fake.Fault{Route: fake.GetMessages, Status: 403, Code: 50001})
	for range 2 {
		stop = r.connect()
		r.Until("the refusal", func() bool { return r.Text(`SELECT count(*) FROM cursors WHERE key LIKE 'hidden:%'`) == "1" })
		stop()
	}
	if n := r.asked(fake.GetMessages, dm); n != 1 {
		t.Errorf("%d calls for a chat that is not shown", n)
	}
	stop = r.connect()
	dm.Say(r.alice, "live")
	r.expect("message: before [Alice]", "message: live [Alice]")
	stop()
	dm.Say(r.alice, "missed")
	r.connect()
	r.expect("message: before [Alice]", "message: live [Alice]", "message: missed [Alice]")
}

// A channel that cannot be looked up holds up no other one.
func TestInbound_LookupFails_OtherChannelsGoOn(t *testing.T) {
	r := newHarness(t, fake.Options{})
	thread := r.general.Thread(r.alice, "Soup")
	thread.Archive(true, false)
	r.connect()
	r.discord.InjectFault(fake.Fault{Route: fake.GetChannel, Status: 502, Times: -1})
	said := func(id int, text string) string {
		return fmt.Sprintf(`{"id":"%d","channel_id":%q,"guild_id":%q,"content":%q,"author":{"id":%q,"username":"alice"}}`,
			id, thread.ChannelID, r.guild.ID, text, r.alice.ID)
	}
	r.discord.Inject("MESSAGE_CREATE", said(1, "first"))
	r.discord.Inject("MESSAGE_CREATE", said(2, "second"))
	r.general.Say(r.alice, "hello")
	r.expect("message: hello [#general]")
	r.discord.ClearFaults()
	r.expect("message: hello [#general]", "message: first [#general / Soup]", "message: second [#general / Soup]")
}

// At the first start there is nothing to backfill.
func TestBackfill_AfterStop_KeepsOrder(t *testing.T) {
	r := newHarness(t, fake.Options{})
	dm := r.discord.DM(r.alice)
	quiet := r.guild.Channel("quiet")
	quiet.Say(r.alice, "long before")
	stop := r.connect()
	r.general.Say(r.alice, "before")
	dm.Say(r.alice, "before, in private")
	want := []string{"message: before [#general]", "message: before, in private [Alice]"}
	r.expect(want...)
	stop()

	dm.Say(r.alice, "meanwhile, in private")
	want = append(want, "message: meanwhile, in private [Alice]")
	missed := 230 // three pages of history
	if testing.Short() {
		missed = 120
	}
	for i := range missed {
		r.general.Say(r.alice, fmt.Sprint("meanwhile ", i))
		want = append(want, fmt.Sprintf("message: meanwhile %d [#general]", i))
	}
	quiet.Say(r.alice, "meanwhile, in an empty channel")
	thread := quiet.Thread(r.alice, "new")
	thread.Say(r.alice, "meanwhile, in what is new")
	want = append(want, "message: meanwhile, in an empty channel [#quiet]", "message: meanwhile, in what is new [#quiet / new]")
	r.discord.InjectFault(fake.Fault{Route: fake.GetMessages, Status: 502}, fake.Fault{Route: fake.GetMessages, RetryAfter: 100 * time.Millisecond})
	stop = r.connect()
	r.general.Say(r.alice, "after")
	want = append(want, "message: after [#general]")
	r.Until("the rows", func() bool { return len(r.stored()) >= len(want) })
	if diff := cmp.Diff(byPlace(want), byPlace(r.stored())); diff != "" {
		t.Fatalf("stored (-want +got):\n%s", diff)
	}
	stop()
	r.connect()
	want = append(r.stored(), "message: the end [#general]")
	r.general.Say(r.alice, "the end")
	r.expect(want...)
}

// byPlace puts rows of different places beside each other; those of one keep their order.
func byPlace(rows []string) []string {
	place := func(row string) string { return row[strings.LastIndexByte(row, '['):] }
	slices.SortStableFunc(rows, func(a, b string) int { return strings.Compare(place(a), place(b)) })
	return rows
}

// Newer messages are stored meanwhile, and so are those of other channels.
func TestBackfill_ChannelFails_IsReadWhenItWorks(t *testing.T) {
	r := newHarness(t, fake.Options{})
	quiet := r.guild.Channel("quiet")
	stop := r.connect()
	r.general.Say(r.alice, "before")
	quiet.Say(r.alice, "before")
	r.expect("message: before [#general]", "message: before [#quiet]")
	stop()
	r.general.Say(r.alice, "meanwhile")
	quiet.Say(r.alice, "meanwhile")
	r.discord.InjectFault(fake.Fault{Route: fake.GetMessages, Status: 502})
	stop = r.connect()
	r.Until("the channel that works", func() bool { return len(r.stored()) >= 3 })
	stop() // in the middle of it
	r.connect()
	r.expect("message: before [#general]", "message: before [#quiet]", "message: meanwhile [#quiet]", "message: meanwhile [#general]")
}

// What Discord refuses to show is asked for again when the bot's permissions change, not at each start.
func TestBackfill_Refused_IsReadWhenPermissionsChange(t *testing.T) {
	r := newHarness(t, fake.Options{})
	stop := r.connect()
	r.general.Say(r.alice, "before")
	r.expect("message: before [#general]")
	stop()
	r.general.Say(r.alice, "meanwhile")
	r.discord.InjectFault(fake.Fault{Route: fake.GetMessages, Status: 403, Code: 50001, Times: -1})
	refusals := func() (n int) {
		for _, c := range r.discord.Calls() {
			if c.Route == fake.GetMessages && c.Status == 403 {
				n++
			}
		}
		return n
	}
	for range 3 {
		stop = r.connect()
		r.Until("the refusal to be kept", func() bool {
			return r.Text(`SELECT count(*) FROM cursors WHERE daemon = 'discd' AND key LIKE 'hidden:%'`) == "1"
		})
		stop()
	}
	if n := refusals(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	r.discord.ClearFaults()
	r.connect()
	r.general.Say(r.alice, "after")
	r.expect("message: before [#general]", "message: after [#general]")
	r.guild.Role("reader")
	r.expect("message: before [#general]", "message: after [#general]", "message: meanwhile [#general]")
}

// Whether or not they had messages when discd stopped.
func TestBackfill_NewChannels_AreReadFromTheirStart(t *testing.T) {
	r := newHarness(t, fake.Options{})
	forum := r.guild.Forum("help")
	stop := r.connect()
	r.general.Say(r.alice, "before")
	silent := r.guild.Channel("silent")
	r.general.Say(r.alice, "later")
	r.expect("message: before [#general]", "message: later [#general]")
	stop()
	silent.Say(r.alice, "in what was silent")
	late := r.guild.Channel("late")
	late.Say(r.alice, "in what is new")
	forum.OpenPost(r.alice, "My pan burns", "what now?")
	r.connect()
	r.expect("message: before [#general]", "message: later [#general]", "message: in what was silent [#silent]",
		"message: in what is new [#late]", "message: what now? [#help / My pan burns]")
}

func TestBackfill_HiddenChannel_DoesNotDelayOthers(t *testing.T) {
	r := newHarness(t, fake.Options{})
	closed := r.guild.Channel("closed")
	stop := r.connect()
	closed.Say(r.alice, "before")
	r.expect("message: before [#closed]")
	stop()
	closed.Say(r.alice, "meanwhile")
	closed.Deny(fake.ViewChannel)
	r.general.Say(r.alice, "meanwhile")
	r.connect()
	r.expect("message: before [#closed]", "message: meanwhile [#general]")
}
