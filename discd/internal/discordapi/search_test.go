package discordapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Find reads whole channels page by page, and no message twice.
func TestFind_ReadsEveryPage(t *testing.T) {
	for _, n := range []int{0, 1, 99, 100, 101, 200, 250} {
		asked, got := 0, 0
		c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			page, after := []Message{}, r.FormValue("after")
			if after == "" { // whether the channel appears empty
				page = append(page, Message{ID: "1"})
			} else {
				asked++
			}
			for id := 1; id <= n && after != "" && len(page) < MaxPage; id++ {
				if Younger(fmt.Sprint(id), after) {
					page = append(page, Message{ID: fmt.Sprint(id)})
				}
			}
			_ = json.NewEncoder(w).Encode(page)
		})
		id, err := c.Find(t.Context(), "5", "0", func(m *Message) (bool, error) {
			if got++; m.ID != fmt.Sprint(got) {
				t.Errorf("message %d is %s", got, m.ID)
			}
			return false, nil
		})
		if id != "" || err != nil || got != n || asked != n/MaxPage+1 {
			t.Errorf("%q, %v, %d of %d, asked %d times", id, err, got, n, asked)
		}
	}
}

func TestFind_InvalidIDs_Ends(t *testing.T) {
	asked, answer := 0, "["+strings.Repeat(`{"id":5},`, MaxPage-1)+`{"id":5}]`
	c, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { asked++; fmt.Fprint(w, answer) })
	matches := func(*Message) (bool, error) { return true, nil }
	if id, err := c.Find(t.Context(), "5", "7", matches); id != "" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	answer = "no"
	if _, err := c.Find(t.Context(), "5", "7", matches); err == nil {
		t.Error("an invalid answer is no error")
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
