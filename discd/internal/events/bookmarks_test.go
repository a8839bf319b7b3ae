package history

import (
	"encoding/json"
	"errors"
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
		missed      []Gap
	}{
		"at the first start": {
			nil, map[string]string{"last:10": "30", "last:11": "19", "last:12": "0", "last:26": "31", "last:27": "0", "last:28": "28"}, nil,
		},
		"what is known already": {
			map[string]string{"last:10": "25", "last:11": "19", "last:12": "0", "last:26": "31", "last:27": "0", "last:28": "28"},
			map[string]string{}, []Gap{{"10", "25", false}},
		},
		"what was made since, and what we have come to see": {
			map[string]string{"last:10": "25", "last:dm-9": "90", "last:99": "90"},
			map[string]string{"last:11": "19", "last:12": "0", "last:26": "25", "last:27": "26", "last:28": "27"},
			[]Gap{{"10", "25", false}, {"26", "25", false}, {"28", "27", false}},
		},
	} {
		b := New(tt.kept)
		if diff := cmp.Diff(tt.fresh, b.Begin(channels()...)); diff != "" {
			t.Errorf("%s, begun (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tt.missed, b.Missed(channels()...)); diff != "" {
			t.Errorf("%s, missed (-want +got):\n%s", name, diff)
		}
		if again := b.Begin(channels()...); len(again) > 0 {
			t.Errorf("%s: begun twice: %v", name, again)
		}
	}
	made := New(nil).Begin(discordapi.Channel{ID: "50", Type: discordapi.ChannelPublicThread, LastMessageID: "50", NewlyCreated: true})
	if diff := cmp.Diff(map[string]string{"last:50": "49"}, made); diff != "" {
		t.Errorf("a thread that begins with a message (-want +got):\n%s", diff)
	}
}

func TestPrivate(t *testing.T) {
	b := New(map[string]string{"last:dm-9": "30", "last:1": "25", "last:dm-8": "7"})
	b.Move("7", "40", true)
	if diff := cmp.Diff([]Gap{{"7", "40", true}, {"8", "7", true}, {"9", "30", true}}, b.Private()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHold keeps a place where its gap begins, whatever comes later.
func TestHold(t *testing.T) {
	b := New(map[string]string{"last:dm-9": "30", "last:9": "31"})
	b.Hold(Gap{"9", "30", true})
	if _, value := b.Move("9", "50", true); value != "30" {
		t.Errorf("moved to %s", value)
	}
	if _, value := b.Move("9", "50", false); value != "50" {
		t.Errorf("another place stays at %s", value)
	}
}

// TestBookmarksOnlyRise whatever comes in which order, and are kept as they are.
func TestBookmarksOnlyRise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, kept, most := New(nil), map[string]string{}, map[string]int{}
		for range rapid.IntRange(0, 30).Draw(t, "messages") {
			channel := fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "channel"))
			private, id := rapid.Bool().Draw(t, "private"), rapid.IntRange(1, 2000).Draw(t, "id")
			key, value := b.Move(channel, fmt.Sprint(id), private)
			kept[key] = value
			if most[key] = max(most[key], id); value != fmt.Sprint(most[key]) {
				t.Fatalf("%s is %s after %d", key, value, most[key])
			}
		}
		if diff := cmp.Diff(b.last, New(kept).last); diff != "" {
			t.Fatalf("kept and read again:\n%s", diff)
		}
	})
}

// TestBehind reads whole channels page by page, and nothing twice.
func TestBehind(t *testing.T) {
	for _, n := range []int{0, 1, 99, 100, 101, 200, 250} {
		var asked []string
		said := func(channel, after string) (page []json.RawMessage, err error) {
			asked = append(asked, channel+" "+after)
			for id := 1; id <= n && len(page) < discordapi.PageMost; id++ {
				if discordapi.Younger(fmt.Sprint(id), after) {
					page = append(page, fmt.Appendf(nil, `{"id":"%d"}`, id))
				}
			}
			return page, nil
		}
		got := 0
		for raw, err := range Behind(Gap{Channel: "5", After: "0"}, said) {
			if got++; err != nil || string(raw) != fmt.Sprintf(`{"id":"%d"}`, got) {
				t.Fatalf("%d: %s, %v", got, raw, err)
			}
		}
		if got != n || len(asked) != n/discordapi.PageMost+1 {
			t.Errorf("%d of %d, asked %q", got, n, asked)
		}
	}
}

// TestBehindNonsense ends.
func TestBehindNonsense(t *testing.T) {
	asked, page := 0, make([]json.RawMessage, discordapi.PageMost)
	for i := range page {
		page[i] = json.RawMessage(`{"id":5}`)
	}
	for range Behind(Gap{Channel: "5", After: "7"}, func(string, string) ([]json.RawMessage, error) { asked++; return page, nil }) {
	}
	broken := errors.New("no")
	for _, err := range Behind(Gap{Channel: "5", After: "7"}, func(string, string) ([]json.RawMessage, error) { asked++; return nil, broken }) {
		if !errors.Is(err, broken) {
			t.Error(err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}
