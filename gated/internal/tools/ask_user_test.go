package tools

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestAskUser_Answer_SaysWhatAndWho(t *testing.T) {
	f := parallel(t)
	if got := f.works("ask_user", `{"question":"Which\n one?","options":["staging","production"]}`); !strings.Contains(got, `"answered":true`) ||
		!strings.Contains(got, `"option":"staging"`) || !strings.Contains(got, `"by":"telegram:7"`) {
		t.Errorf("the model reads %s", got)
	}
	asks, err := f.st.TurnAsks(t.Context(), f.turn.ID)
	if err != nil || len(asks) != 1 || asks[0].Question != "Which one?" || asks[0].PayloadHash != "" {
		t.Errorf("stored %+v, %v", asks, err)
	}
}

func TestAskUser_NoAnswer_CountsAsNo(t *testing.T) {
	f := parallel(t)
	f.holdAnswers = true
	result := make(chan string, 1)
	go func() {
		text, _ := f.call("ask_user", `{"question":"Which?","options":["a","b"]}`)
		result <- text
	}()
	var asks []*msg.Ask
	storetest.Eventually(t, "the question", func() bool {
		asks = storetest.Must(f.st.TurnAsks(t.Context(), f.turn.ID))(t)
		return len(asks) == 1
	})
	f.refused("edit_message", fmt.Sprintf(`{"message_id":%d,"text":"You have allowed all."}`, asks[0].MessageID), "only its answer changes")
	f.write(func(tx *store.Tx) error { return rows.ExpireAsk(tx, asks[0].ID, asks[0].ExpiresAt) })
	if got := <-result; !strings.Contains(got, `"answered":false`) || strings.Contains(got, `"option"`) {
		t.Errorf("the model reads %s", got)
	}
}

func TestAskUser_NotDelivered_SaysSo(t *testing.T) {
	f := parallel(t)
	f.loseAsks = true
	f.refused("ask_user", `{"question":"Which?","options":["a","b"]}`, "could not be delivered, so no user has read it")
}

// A model that asks the same twice gets two questions; one whose call was cut off waits for the first.
func TestAskUser_SameQuestionAgain_IsAnotherOnceAnswered(t *testing.T) {
	f := parallel(t)
	const call = `{"question":"Which?","options":["a","b"]}`
	f.works("ask_user", call)
	f.works("ask_user", call)
	asks, err := f.st.TurnAsks(t.Context(), f.turn.ID)
	if err != nil || len(asks) != 2 {
		t.Errorf("%d questions, %v", len(asks), err)
	}
	f.access.Begin(f.turn.ID, &groupconfig.Config{}) // the next attempt at the turn
	f.works("ask_user", call)
	if asks, _ = f.st.TurnAsks(t.Context(), f.turn.ID); len(asks) != 2 {
		t.Errorf("after a retry %d questions", len(asks))
	}
}

func TestKeepAlive_SlowAnswer_BeginsWithWhiteSpace(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	server := httptest.NewServer(keepAlive(time.Millisecond, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/quick" {
			w.WriteHeader(http.StatusTeapot)
		} else {
			<-answer
		}
		_, _ = w.Write([]byte(`{"ok":true}`))
	})))
	defer server.Close()
	post := func(path string) *http.Response {
		return storetest.Must(server.Client().Post(server.URL+path, "application/json", nil))(t)
	}
	slow := post("/slow") // its header is there before the answer
	close(answer)
	body, err := io.ReadAll(slow.Body)
	slow.Body.Close()
	if err != nil || slow.StatusCode != http.StatusOK || body[0] != '\n' || strings.TrimSpace(string(body)) != `{"ok":true}` {
		t.Errorf("%d %q, %v", slow.StatusCode, body, err)
	}
	quick := post("/quick")
	body, _ = io.ReadAll(quick.Body)
	quick.Body.Close()
	if quick.Header.Get("Content-Type") != "application/json" || strings.TrimSpace(string(body)) != `{"ok":true}` {
		t.Errorf("%d %q", quick.StatusCode, body)
	}
}
