package tools

import (
	"fmt"
	"strings"
	"testing"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const tooMuch = "KiB: shorten the text"

// withChats gives the fixture's group n more chats.
func (f *fixture) withChats(n int) {
	f.t.Helper()
	f.write(func(tx *store.Tx) error {
		for i := range n {
			jid := fmt.Sprintf("telegram:-1%03d", i)
			if err := tx.EnsureChat(jid, 1); err != nil {
				return err
			}
			if err := tx.PutRoute(&msg.Route{Match: "chat_jid=" + jid, Target: folder}); err != nil {
				return err
			}
		}
		return nil
	})
}

// The calls of a turn may store a bounded number of bytes over all tools, also if the turn is tried again.
func TestVolume_TurnStoresMuch_FurtherCallsAreRefused(t *testing.T) {
	f := parallel(t)
	big := strings.Repeat("<\U0001F600>", maxText/4)
	calls := []struct{ tool, arguments string }{
		{"send_message", `{"text":"%d%s"}`}, {"edit_message", `{"message_id":OWN_ANSWER,"text":"%d%s"}`}, {"delegate", `{"folder":"acme/eng","prompt":"%d%s"}`},
	}
	made, refused := 0, ""
	for ; refused == ""; made++ {
		call := calls[made%len(calls)]
		if text, isError := f.call(call.tool, fmt.Sprintf(call.arguments, made, big)); isError {
			refused = text
		}
	}
	_, used, err := rows.CountToolCalls(t.Context(), f.st.Reader, f.turn.ID)
	if err != nil || used > maxTurnBytes || used < maxTurnBytes-len(big)-200 || !strings.Contains(refused, tooMuch) {
		t.Errorf("%d bytes are stored by %d calls, %v, then: %s", used, made, err, refused)
	}
	f.retry()
	f.refused("send_message", `{"text":"`+big+`"}`, tooMuch)
	f.works("send_message", fmt.Sprintf(`{"text":"0%s"}`, big)) // the result of the first attempt
	f.works("send_message", `{"text":"short"}`)
}

func TestVolume_Broadcast_CountsAsOftenAsItHasChats(t *testing.T) {
	f := parallel(t)
	f.withChats(40)
	f.refused("broadcast", `{"text":"`+strings.Repeat("x", maxText)+`"}`, tooMuch)
	text := `{"text":"` + strings.Repeat("x", maxTurnBytes/90) + `%d"}`
	f.works("broadcast", fmt.Sprintf(text, 1))
	f.works("broadcast", fmt.Sprintf(text, 2))
	f.refused("broadcast", fmt.Sprintf(text, 3), tooMuch)
	f.works("broadcast", fmt.Sprintf(text, 1)[:100]+`","chats":["OWN_CHAT"]}`)
}

// nextTurn ends the fixture's turn and run, and begins others.
func (f *fixture) nextTurn() {
	f.t.Helper()
	f.access.Close()
	f.cancelTurn()
	f.write(func(tx *store.Tx) error { return rows.EndRun(tx, f.access.run.ID, "", 2) })
	f.own, f.turn, f.access = f.startRun(folder, chat, "and now?")
}

// The limit is the group's, whatever its turns, and is that of the rows.
func TestBroadcast_MoreThanTheLimitWithinAnHour_IsRefused(t *testing.T) {
	f := parallel(t)
	f.withChats(1)
	for range maxBroadcasts {
		f.works("broadcast", `{"text":"news"}`)
		f.nextTurn()
	}
	f.refused("broadcast", `{"text":"news"}`, "within the hour")
	f.works("send_message", `{"text":"news"}`)
	f.clock = f.clock.Add(broadcastTime)
	f.works("broadcast", `{"text":"news"}`)
}
