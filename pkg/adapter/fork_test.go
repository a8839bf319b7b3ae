package adapter

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// TestDeliver_ThreadOfForkRefused_ForkEndsAndGroupReadsIt sends to the own thread of a fork, which the platform does not open.
func TestDeliver_ThreadOfForkRefused_ForkEndsAndGroupReadsIt(t *testing.T) {
	for _, tt := range []struct {
		name    string
		thread  string // of the message that fails
		earlier func(r *fixture)
		ends    bool
	}{
		{name: "its first message", thread: "7", ends: true},
		{name: "its second message", thread: "7", earlier: func(r *fixture) { r.out("7", "first") }},
		{name: "after a user's message", thread: "7", earlier: func(r *fixture) {
			r.write(func(tx *store.Tx) error {
				_, _, err := tx.PutMessage(&msg.Message{ChatJID: room, ThreadID: "7", Direction: msg.In, Content: "hi", Timestamp: 1, ReceivedAt: 1})
				return err
			})
		}},
		{name: "another thread", thread: "8"},
		{name: "the chat", thread: ""},
	} {
		runInBubble(t, tt.name, func(t *testing.T, r *fixture) {
			wrong := r.out("", "Monday")
			r.write(func(tx *store.Tx) error {
				return gatedtest.PutFork(tx, &msg.Fork{ChatJID: room, Topic: "#deploy#fix", Folder: "acme", ThreadID: "7", OwnThread: true, MessageID: wrong, CreatedAt: 1})
			})
			if tt.earlier != nil {
				tt.earlier(r)
			}
			r.platform.script("refused", fails(failure(msg.Permanent, 0)), fails(failure(msg.Permanent, 0)))
			r.out(tt.thread, "refused")
			r.out(tt.thread, "refused")
			r.start()
			time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
			synctest.Wait()
			fork, err := r.store.Fork(t.Context(), room, "#deploy#fix")
			if err != nil || (fork.EndedAt != 0) != tt.ends {
				t.Errorf("the fork: %+v, %v", fork, err)
			}
			if got := r.systemMessages("acme"); len(got) != map[bool]int{true: 1}[tt.ends] || tt.ends && got[0].Event != "fork_failed" {
				t.Errorf("the group's next prompt: %+v", got)
			}
		})
	}
}

// systemMessages are those of a group's next prompt.
func (r *fixture) systemMessages(folder string) (all []gatedtest.SystemMessage) {
	r.t.Helper()
	r.write(func(tx *store.Tx) error {
		m := &msg.Message{ChatJID: "irc:other", Direction: msg.In, Timestamp: 1, ReceivedAt: 1}
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		turn := &msg.Turn{Kind: msg.Conversation, Folder: folder, ChatJID: m.ChatJID, TriggerMessageID: m.ID, CreatedAt: 1}
		if _, err := gatedtest.PutTurn(tx, turn, 1); err != nil {
			return err
		}
		if err := gatedtest.ClaimSystemMessages(tx, folder, turn.ID); err != nil {
			return err
		}
		var err error
		all, err = gatedtest.TurnSystemMessages(r.t.Context(), tx.Reader, turn.ID)
		return err
	})
	return all
}

// What an agent wrote and users do not get, the agent reads of: a few lines, however many rows fail. What arizuko itself wrote
// is no agent's.
func TestDeliver_RowOfAgentFails_GroupReadsIt(t *testing.T) {
	for name, tt := range map[string]struct {
		row   msg.Message
		times int
		want  string // in the first line, "" for no line
		lines int
	}{
		"answer":   {msg.Message{Sender: "agent:acme", Source: msg.SourceAgent, ThreadID: "7"}, 1, "to chat irc:room in thread 7 was not delivered: ", 1},
		"reaction": {msg.Message{Kind: msg.KindReaction, TargetID: "5", Sender: "agent:acme", Source: msg.SourceTool}, 1, "The reaction with id ", 1},
		"many":     {msg.Message{Sender: "agent:acme", Source: msg.SourceBroadcast}, 20, "was not delivered: ", 10},
		"notice":   {msg.Message{Sender: "agent:acme", Source: msg.SourceNotice}, 1, "", 0},
		"operator": {msg.Message{Source: msg.SourceBroadcast}, 1, "", 0},
	} {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			refusals := make([]outcome, tt.times)
			for i := range refusals {
				refusals[i] = fails(failure(msg.Permanent, 0))
			}
			r.platform.script("refused", refusals...)
			for range tt.times {
				m := tt.row
				m.ChatJID, m.Direction, m.Content, m.OutState, m.Timestamp, m.ReceivedAt = room, msg.Out, "refused", msg.OutQueued, 1, time.Now().UnixMilli()
				r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(&m); return err })
			}
			r.start()
			<-time.After(time.Minute)
			synctest.Wait()
			got := r.systemMessages("acme")
			if len(got) != tt.lines || tt.lines > 0 && !strings.Contains(got[0].Body, tt.want) {
				t.Errorf("the group's next prompt: %+v", got)
			}
		})
	}
}
