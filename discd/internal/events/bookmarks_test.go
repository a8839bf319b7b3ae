package events

import (
	"fmt"
	"testing"

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
		missed      []gap
	}{
		"at the first start": {
			nil, map[string]string{"last:10": "30", "last:11": "19", "last:12": "0", "last:26": "31", "last:27": "0", "last:28": "28"}, nil,
		},
		"what is known already": {
			map[string]string{"last:10": "25", "last:11": "19", "last:12": "0", "last:26": "31", "last:27": "0", "last:28": "28"},
			map[string]string{}, []gap{{"10", "25", false}},
		},
		"what was made since, and what we have come to see": {
			map[string]string{"last:10": "25", "last:dm-9": "90", "last:99": "90"},
			map[string]string{"last:11": "19", "last:12": "0", "last:26": "25", "last:27": "26", "last:28": "27"},
			[]gap{{"10", "25", false}, {"26", "25", false}, {"28", "27", false}},
		},
	} {
		b := newBookmarks(tt.kept)
		if diff := cmp.Diff(tt.fresh, b.begin(channels()...)); diff != "" {
			t.Errorf("%s, begun (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tt.missed, b.missed(channels()...)); diff != "" {
			t.Errorf("%s, missed (-want +got):\n%s", name, diff)
		}
		if again := b.begin(channels()...); len(again) > 0 {
			t.Errorf("%s: begun twice: %v", name, again)
		}
	}
	made := newBookmarks(nil).begin(discordapi.Channel{ID: "50", Type: discordapi.ChannelPublicThread, LastMessageID: "50", NewlyCreated: true})
	if diff := cmp.Diff(map[string]string{"last:50": "49"}, made); diff != "" {
		t.Errorf("a thread that begins with a message (-want +got):\n%s", diff)
	}
}

func TestPrivate(t *testing.T) {
	b := newBookmarks(map[string]string{"last:dm-9": "30", "last:1": "25", "last:dm-8": "7"})
	b.move("7", "40", true)
	if diff := cmp.Diff([]gap{{"7", "40", true}, {"8", "7", true}, {"9", "30", true}}, b.privateGaps()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHold keeps a place where its gap begins, whatever comes later.
func TestHold(t *testing.T) {
	b := newBookmarks(map[string]string{"last:dm-9": "30", "last:9": "31"})
	b.hold(gap{"9", "30", true})
	if _, value := b.move("9", "50", true); value != "30" {
		t.Errorf("moved to %s", value)
	}
	if _, value := b.move("9", "50", false); value != "50" {
		t.Errorf("another place stays at %s", value)
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
