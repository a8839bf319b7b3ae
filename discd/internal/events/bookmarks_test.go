package events

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"arizuko/discd/internal/discordapi"
)

// channels of a guild, made and last spoken in at these times.
func channels() []discordapi.Channel {
	return []discordapi.Channel{
		{ID: "10", LastMessageID: "30"}, {ID: "11", LastMessageID: "19"}, {ID: "12"}, {ID: "26", LastMessageID: "31"}, {ID: "27"},
		{ID: "28", LastMessageID: "28", Type: discordapi.ChannelPublicThread}, {ID: "13", LastMessageID: "40", Type: discordapi.ChannelForum},
		{ID: "14", LastMessageID: "40", Type: discordapi.ChannelCategory}, {ID: "15", LastMessageID: "40", Type: discordapi.ChannelDM}, {},
	}
}

func TestBegin(t *testing.T) {
	for name, tt := range map[string]struct {
		kept, fresh map[string]string
		missed      []string
	}{
		"at the first start": {
			nil, map[string]string{"last:10": "30", "last:11": "19", "last:12": "0", "last:26": "31", "last:27": "0", "last:28": "28"}, nil,
		},
		"what is known already": {
			map[string]string{"last:10": "25", "last:11": "19", "last:12": "0", "last:26": "31", "last:27": "0", "last:28": "28"},
			map[string]string{}, []string{"10"},
		},
		"what was made since, and what we have come to see": {
			map[string]string{"last:10": "25", "last:dm-9": "90", "last:99": "90"},
			map[string]string{"last:11": "19", "last:12": "0", "last:26": "25", "last:27": "26", "last:28": "27"},
			[]string{"10", "26", "28"},
		},
	} {
		b := newBookmarks(tt.kept)
		if diff := cmp.Diff(tt.fresh, b.begin(b.youngest(channels()...), channels()...)); diff != "" {
			t.Errorf("%s, begun (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tt.missed, missedIDs(b)); diff != "" {
			t.Errorf("%s, missed (-want +got):\n%s", name, diff)
		}
		if again := b.begin(b.youngest(channels()...), channels()...); len(again) > 0 {
			t.Errorf("%s: begun twice: %v", name, again)
		}
	}
	made := newBookmarks(nil).begin("", discordapi.Channel{ID: "50", Type: discordapi.ChannelPublicThread, LastMessageID: "50", NewlyCreated: true})
	if diff := cmp.Diff(map[string]string{"last:50": "49"}, made); diff != "" {
		t.Errorf("a thread that begins with a message (-want +got):\n%s", diff)
	}
}

// missedIDs are the channels with missed messages.
func missedIDs(b *bookmarks) (ids []string) {
	for _, c := range b.missed(channels()...) {
		ids = append(ids, c.ID)
	}
	return ids
}

// at is an id made some days after the first.
func at(days int) string {
	return discordapi.SnowflakeAt(discordapi.SnowflakeTime("1") + int64(days)*24*time.Hour.Milliseconds() + 1)
}

func TestBookmarks_Private_NewestFirst_QuietOnesForgotten(t *testing.T) {
	b := newBookmarks(map[string]string{"last:dm-9": at(90), "last:1": at(5), "last:dm-8": at(95), "last:dm-7": at(40)})
	channels, old := b.private(time.UnixMilli(discordapi.SnowflakeTime(at(100))))
	if diff := cmp.Diff([]string{"8", "9"}, channels); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"last:dm-7"}, old); diff != "" || b.last["last:dm-7"] != "" || b.last["last:1"] == "" {
		t.Errorf("forgotten (-want +got):\n%s", diff)
	}
}

func TestBookmarks_ForgetThreads_QuietUnknownOnes(t *testing.T) {
	b := newBookmarks(map[string]string{
		"last:1": at(5), "last:2": at(5), "last:3": at(5), "last:4": at(90), "last:5": at(5),
		"thread:2": "1", "thread:3": "1", "thread:4": "1", "thread:5": "1",
	})
	b.open(&gap{channel: "5"})
	keys := b.forget(time.UnixMilli(discordapi.SnowflakeTime(at(100))), func(id string) bool { return id == "3" })
	if diff := cmp.Diff([]string{"last:2", "thread:2"}, keys); diff != "" {
		t.Errorf("forgotten (-want +got):\n%s", diff)
	}
}

// What the session sends meanwhile does not move the bookmark past the gap.
func TestBookmarks_Gap_KeepsItsPlaceUntilItIsClosed(t *testing.T) {
	b := newBookmarks(map[string]string{"last:9": "30"})
	g := &gap{channel: "9", after: "30"}
	b.open(g)
	if _, value := b.move("9", "50", false); value != "30" {
		t.Errorf("moved to %s", value)
	}
	if over := g.read([]string{"31", "40"}); !over {
		t.Error("a short page is not the last one")
	}
	if key, value := b.close(g); key != "last:9" || value != "50" || b.last[key] != "50" {
		t.Errorf("closed at %s: %s", key, value)
	}
	if _, value := b.move("9", "60", false); value != "60" {
		t.Errorf("moved to %s", value)
	}
}

func TestGap_Read_FullPageWithoutNewIDs_Ends(t *testing.T) {
	g := &gap{after: "500"}
	if full := make([]string, discordapi.MaxPage); !g.read(full) {
		t.Error("the same page would be read for ever")
	}
	var ids []string
	for i := range discordapi.MaxPage {
		ids = append(ids, fmt.Sprint(600+i))
	}
	if g.read(ids) || g.after != "699" {
		t.Errorf("ended after %s", g.after)
	}
}

// Those for which events wait first, then each in turn, those that are quiet last.
func TestBookmarks_Next_Order(t *testing.T) {
	b, now := newBookmarks(nil), time.Unix(1795262400, 0)
	for _, g := range []*gap{{channel: "1", quiet: true}, {channel: "2"}, {channel: "3"}, {channel: "4", due: now.Add(time.Second)}, {channel: "5", private: true, quiet: true}} {
		b.open(g)
	}
	b.open(&gap{channel: "2", after: "again"})
	var order []string
	for g := b.next(now, waitsFor("5")); g != nil && len(order) < 8; g = b.next(now, waitsFor("5")) {
		order = append(order, g.channel)
		b.again(g)
		g.reading = g.channel != "2" || len(order) > 2 // 2 has another page
	}
	if diff := cmp.Diff([]string{"5", "2", "3", "2", "1"}, order[:min(len(order), 5)]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if due, some := b.dueAt(); !some || !due.Equal(now.Add(time.Second)) {
		t.Errorf("due at %v, %t", due, some)
	}
}

func waitsFor(waiting string) func(string) bool {
	return func(channel string) bool { return channel == waiting }
}

func TestGap_Fail_PausesGrow_AndObeyDiscord(t *testing.T) {
	now := time.Unix(1795262400, 0)
	g := &gap{}
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if g.fail(now, 0); g.due.Sub(now) != want {
			t.Errorf("pause %d is %v", i, g.due.Sub(now))
		}
	}
	if g.fail(now, time.Hour); g.due.Sub(now) != time.Hour {
		t.Errorf("an hour is %v", g.due.Sub(now))
	}
	for range 100 {
		g.fail(now, 0)
	}
	if g.due.Sub(now) != maxReadDelay {
		t.Errorf("the longest is %v", g.due.Sub(now))
	}
}

func TestGap_Bound_SkipsWhatIsTooOld(t *testing.T) {
	g := &gap{after: "30"}
	if g.bound("20") || g.after != "30" || !g.bound("40") || g.after != "40" || g.bound("40") {
		t.Errorf("begins after %s", g.after)
	}
}

// TestBookmarksOnlyRise whatever comes in which order, and are kept as they are.
func TestBookmarksOnlyRise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, kept, highest := newBookmarks(nil), map[string]string{}, map[string]int{}
		for range rapid.IntRange(0, 30).Draw(t, "messages") {
			channel := fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "channel"))
			private, id := rapid.Bool().Draw(t, "private"), rapid.IntRange(1, 2000).Draw(t, "id")
			key, value := b.move(channel, fmt.Sprint(id), private)
			kept[key] = value
			if highest[key] = max(highest[key], id); value != fmt.Sprint(highest[key]) {
				t.Fatalf("%s is %s after %d", key, value, highest[key])
			}
		}
		if diff := cmp.Diff(b.last, newBookmarks(kept).last); diff != "" {
			t.Fatalf("kept and read again:\n%s", diff)
		}
	})
}
