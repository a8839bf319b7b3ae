package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// readItems reads a request to routd and leaves its body to be read again.
func readItems(r *http.Request) []routeapi.Item {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var req routeapi.Request
	_ = json.Unmarshal(body, &req)
	return req.Items
}

// toDaemon routes every row to the daemon "crm".
func toDaemon(_ routeapi.Item, a *routeapi.Answer) {
	a.Action, a.Folder, a.Target, a.RouteID = routeapi.Daemon, "", "daemon:crm", 7
}

// finishCalls handles the ends of all calls to services.
func (h *harness) finishCalls() {
	h.t.Helper()
	for h.g.calls.running > 0 {
		h.g.listen(h.t.Context(), nil, nil, false)
	}
	h.step()
}

// hanging is a service that answers once hang is closed.
func hanging(t *testing.T, hang chan struct{}) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		<-hang
		httpx.JSON(w, http.StatusOK, map[string]string{"text": "fine"})
	}).Base
}

func TestDaemon_AcceptsRows_OneAfterAnother(t *testing.T) {
	h := parallel(t)
	h.routd.route(toDaemon)
	var texts []string
	answers := make(chan struct{})
	h.g.calls.to.Daemons = map[string]*httpx.Client{"crm": serve(t, func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
			RouteID int64 `json:"route_id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.RouteID != 7 {
			t.Errorf("request %+v, %v", req, err)
		}
		<-answers
		texts = append(texts, req.Message.Content) // no two calls of a chat overlap
		httpx.JSON(w, http.StatusOK, map[string]string{"reply": "noted " + req.Message.Content})
	})}
	first, second := h.put("one"), h.put("two")
	h.step()
	h.is(first, "")
	h.is(h.take("/ping"), "command/command ")
	close(answers)
	h.finishCalls()
	h.are("routed/daemon daemon:crm", first, second)
	diff(t, "rows", texts, []string{"one", "two"})
	diff(t, "replies", append(h.replies(first), h.replies(second)...), []string{"noted one", "noted two"})
}

func TestDaemon_Unknown_DropsTheRow(t *testing.T) {
	h := parallel(t)
	h.routd.route(toDaemon)
	m := h.take("one")
	h.finishCalls()
	h.is(m, "dropped/daemon_failed ")
	if !strings.Contains(h.log.String(), "daemon=crm") {
		t.Errorf("log:\n%s", h.log.String())
	}
}

func TestStatus_IsAnsweredByItsService(t *testing.T) {
	h := parallel(t)
	h.g.calls.to.Dashd = serve(t, func(w http.ResponseWriter, r *http.Request) {
		httpx.JSON(w, http.StatusOK, map[string]string{"text": r.URL.Path + " of " + r.URL.Query().Get("chat_jid")})
	})
	m := h.take("/status")
	h.finishCalls()
	h.is(m, "command/command ")
	diff(t, "replies", h.replies(m), []string{"/status of " + dm})
}

// A /stop leaves rows and turns of other threads and chats alone.
func TestStop_OtherThreadsAndChats_GoOn(t *testing.T) {
	t.Parallel()
	const forum = "telegram:-5"
	inThread := func(id string) func(*msg.Message) {
		return func(m *msg.Message) { m.ChatJID, m.ThreadID, m.Verb = forum, id, msg.VerbMention }
	}
	h := newHarness(t)
	places := map[string]func(*msg.Message){"": inThread(""), "7": inThread("7"), "8": inThread("8"), "another chat": in("telegram:-6")}
	for at := range places {
		if at == "another chat" {
			continue
		}
		t.Run("in thread "+at, func(t *testing.T) {
			turns, held := map[string]*msg.Message{}, map[string]*msg.Message{}
			h.routd.route(nil)
			for place, put := range places {
				turns[place] = h.put("queued", put)
			}
			h.step()
			h.routd.route(quietly)
			for place, put := range places {
				held[place] = h.put("held", put, verb(msg.VerbMessage))
			}
			h.step()
			stop := h.take("/stop", places[at], verb(msg.VerbMessage))
			diff(t, "replies", h.replies(stop), []string{"stopped"})
			h.wait(2 * maxHold)
			for place := range places {
				state, fate := msg.TurnQueued, "routed/route main"
				if place == at {
					state, fate = msg.TurnCancelled, "dropped/stopped "
				}
				h.is(held[place], fate)
				h.turnIs(h.row(turns[place].ID).TurnID, state)
			}
		})
	}
}

// asks writes a command of an operator, as a reply to a message, and returns the only answer.
func (h *harness) asks(text, replyTo string, change ...func(*msg.Message)) string {
	h.t.Helper()
	m := h.take(text, append([]func(*msg.Message){from("telegram:9"), func(m *msg.Message) { m.ReplyToID = replyTo }}, change...)...)
	h.finishCalls()
	h.is(m, "command/command ")
	all := h.replies(m)
	if len(all) != 1 {
		h.t.Fatalf("%s: %d answers: %q", text, len(all), all)
	}
	return all[0]
}

func TestWhy_AsAReply_TellsWhatBecameOfTheMessage(t *testing.T) {
	h := parallel(t)
	asked := h.take("the secret text")
	answer := &msg.Message{ChatJID: dm, Direction: msg.Out, Source: msg.SourceAgent, Content: "an answer", TurnID: h.row(asked.ID).TurnID,
		Timestamp: 1, ReceivedAt: h.clock.UnixMilli(), OutState: msg.OutQueued}
	h.write(func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(answer); err != nil {
			return err
		}
		if err := tx.ClaimOutbound(answer.ID, 1, h.clock.UnixMilli()); err != nil {
			return err
		}
		return tx.PutDelivery(store.Delivery{MessageID: answer.ID, State: msg.OutSent, PlatformID: "sent1"}, h.clock.UnixMilli())
	})
	for text, replyTo := range map[string]string{"/why": asked.PlatformID, fmt.Sprintf("/why %d", asked.ID): "", fmt.Sprintf("/why #%d", asked.ID): "sent1"} {
		got := h.asks(text, replyTo)
		for _, want := range []string{fmt.Sprintf("Message %d, ", asked.ID), fmt.Sprintf("message %d decided: routed, ", asked.ID), fmt.Sprintf("message %d part 0: sent, platform id sent1", answer.ID)} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in:\n%s", text, want, got)
			}
		}
		if strings.Contains(got, "secret text") || strings.Contains(got, "an answer") {
			t.Errorf("it repeats messages:\n%s", got)
		}
	}
	if got := h.asks("/why", "sent1"); !strings.HasPrefix(got, fmt.Sprintf("Message %d, ", answer.ID)) || !strings.Contains(got, "sent by agent") {
		t.Errorf("about an answer:\n%s", got)
	}
}
