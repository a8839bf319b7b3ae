package main

import (
	"encoding/json"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/invariants"
)

// toolGenerator is a generator with two chats of agents that call tools.
func toolGenerator(t *testing.T) *generator {
	t.Helper()
	g := recordedGenerator(t, 1)
	g.toolChats = []chatsim.Conversation{{Chat: "matrix:tool-1"}, {Chat: "matrix:tool-2", Thread: "t1", Topic: "t1"}}
	return g
}

func TestToolMessages_CallsAreJSONAndHaveEffects(t *testing.T) {
	g := toolGenerator(t)
	var all []toolMessage
	for _, kind := range toolMessageKinds() {
		all = append(all, kind(g, g.toolChats[1], g.plainText()))
	}
	c := g.toolChats[0]
	all = append(all, escalateQuestion(c, "m1"), delegationStorm(c, "m2"), delegationLoop(c, "m3"))
	names := strings.NewReplacer("$this", "1", "$message_id", "2", "$poll_id", "3")
	for _, m := range all {
		if len(m.effects) == 0 {
			t.Errorf("%q has no effects", m.content)
		}
		calls := 0
		for line := range strings.Lines(m.content) {
			call, is := strings.CutPrefix(strings.TrimSpace(line), "call ")
			if !is {
				continue
			}
			calls++
			if _, arguments, _ := strings.Cut(call, " "); !json.Valid([]byte(names.Replace(arguments))) {
				t.Errorf("arguments of %q are not JSON", call)
			}
		}
		if calls == 0 {
			t.Errorf("%q has no call", m.content)
		}
	}
}

func TestCallTools_StaysInItsChats(t *testing.T) {
	g := toolGenerator(t)
	for range 200 {
		g.callTools(t.Context())
	}
	if err := g.failure.get(); err != nil || len(g.toolMessages) != 200 {
		t.Fatal(err, len(g.toolMessages))
	}
	for _, m := range g.toolMessages {
		if !strings.HasPrefix(m.chat, "matrix:"+toolsRoom) && !strings.HasPrefix(m.chat, "matrix:"+toolsChildRoom) {
			t.Errorf("%q is in %s", m.content, m.chat)
		}
	}
}

// sentOnce is a message whose call sends "m2", and what its turn answers.
func sentOnce(answer string) string {
	return `INSERT INTO messages (id, chat_jid, platform_id, direction, source, content, timestamp, received_at, routed_to, disposition, reason, decided_at,
		decision_seq, turn_id, out_state) VALUES
		(1, 'matrix:tool-1', 'p1', 'in', 'matrix', 'call it', 1, 100, 'tools', 'routed', 'route', 1, 1, 1, NULL),
		(2, 'matrix:tool-1', NULL, 'out', 'tool', 'm2', 1, 200, NULL, NULL, NULL, NULL, NULL, 1, 'sent'),
		(3, 'matrix:tool-1', NULL, 'out', 'agent', '` + answer + `', 1, 300, NULL, NULL, NULL, NULL, NULL, 1, 'sent');`
}

func TestResult_CheckToolMessages(t *testing.T) {
	c := chatsim.Conversation{Chat: "matrix:tool-1"}
	message := func(want int) toolMessage {
		return toolMessage{chat: c.Chat, content: "call it", effects: []effect{sentRows(c, "tool", "message", "m2", want)}}
	}
	late := toolMessage{chat: c.Chat, content: "call it", late: true, effects: []effect{
		{`SELECT count(*) FROM reminders WHERE body = ?`, []any{"m3"}, 1}, sentRows(c, "reminder", "message", "m3", 1),
	}}
	loop := message(1)
	loop.refuses = []string{"delegate"}
	const ok, refused, passed = `send_message {"message_id":2}`, "delegate error too often", "reminder_create error due_at has passed"
	for name, tc := range map[string]struct {
		message toolMessage
		rows    string
		want    counts
	}{
		"once":                 {message(1), sentOnce(ok), counts{}},
		"lost":                 {message(3), sentOnce(ok), counts{invariants.Lost: 2}},
		"doubled":              {message(0), sentOnce(ok), counts{invariants.Doubled: 1}},
		"refused":              {message(1), sentOnce(refused), counts{invariants.Lost: 1}},
		"may refuse":           {loop, sentOnce(refused), counts{}},
		"a late reminder":      {late, sentOnce(passed), counts{}},
		"another late one":     {message(1), sentOnce(passed), counts{}},
		"a lost reminder":      {late, sentOnce(ok), counts{invariants.Lost: 2}},
		"a reminder is active": {message(1), sentOnce(ok) + `INSERT INTO reminders (folder, chat_jid, kind, body, state, created_by, created_at, updated_at, due_at) VALUES ('tools', 'matrix:tool-1', 'text', 'x', 'active', 'a', 1, 1, 1)`, counts{invariants.Stuck: 1}},
		"not stored":           {message(0), ``, counts{invariants.Lost: 1}},
		"no answer":            {message(1), sentOnce(ok) + `DELETE FROM messages WHERE id = 3`, counts{invariants.Lost: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			r := empty()
			if err := r.checkToolMessages(database(t, tc.rows), &generator{toolMessages: []toolMessage{tc.message}}); err != nil {
				t.Fatal(err)
			}
			expect(t, r, tc.want)
		})
	}
}
