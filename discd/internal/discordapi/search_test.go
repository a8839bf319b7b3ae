package discordapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
)

// AllAfter reads whole channels page by page, and no message twice.
func TestAllAfter_ReadsEveryPage(t *testing.T) {
	for _, n := range []int{0, 1, 99, 100, 101, 200, 250} {
		var asked []string
		next := func(channel, after string) (page []json.RawMessage, err error) {
			asked = append(asked, channel+" "+after)
			for id := 1; id <= n && len(page) < MaxPage; id++ {
				if Younger(fmt.Sprint(id), after) {
					page = append(page, fmt.Appendf(nil, `{"id":"%d"}`, id))
				}
			}
			return page, nil
		}
		got := 0
		for raw, err := range AllAfter("5", "0", next) {
			if got++; err != nil || string(raw) != fmt.Sprintf(`{"id":"%d"}`, got) {
				t.Fatalf("%d: %s, %v", got, raw, err)
			}
		}
		if got != n || len(asked) != n/MaxPage+1 {
			t.Errorf("%d of %d, asked %q", got, n, asked)
		}
	}
}

func TestAllAfter_InvalidIDs_Ends(t *testing.T) {
	asked, page := 0, make([]json.RawMessage, MaxPage)
	for i := range page {
		page[i] = json.RawMessage(`{"id":5}`)
	}
	for range AllAfter("5", "7", func(string, string) ([]json.RawMessage, error) { asked++; return page, nil }) {
	}
	broken := errors.New("no")
	for _, err := range AllAfter("5", "7", func(string, string) ([]json.RawMessage, error) { asked++; return nil, broken }) {
		if !errors.Is(err, broken) {
			t.Error(err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

func TestMessagesAfter_ServerBeginsWithTheOldest_SortsByID(t *testing.T) {
	for _, answer := range []string{`[{"id":"9"},{"id":"10"},{"id":"11"}]`, `[{"id":"11"},{"id":"10"},{"id":"9"}]`} {
		c, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) })
		page, err := c.MessagesAfter(t.Context(), "5", "7")
		if err != nil || fmt.Sprintf("%s", page) != `[{"id":"9"} {"id":"10"} {"id":"11"}]` {
			t.Errorf("%s, %v", page, err)
		}
	}
}
