package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestWhy(t *testing.T) {
	data := t.TempDir()
	t.Setenv("ARIZUKO_DATA", data)
	t.Setenv("ARIZUKO_SECRET", "0123456789abcdef")
	t.Setenv("API_KEY", "sk-secret-of-the-agent")
	t.Setenv("AGENT_ENV", "API_KEY")
	run := func(args ...string) (code int, stdout, stderr string) {
		var out, problems bytes.Buffer
		code = program().Run(t.Context(), append([]string{"why"}, args...), &out, &problems)
		return code, out.String(), problems.String()
	}
	if code, _, problem := run("1"); code != daemon.ExitFailure || !strings.Contains(problem, "no database at") {
		t.Errorf("without a database: %d, %s", code, problem)
	}

	path := filepath.Join(data, "arizuko.db")
	if err := storetest.Migrate(path); err != nil {
		t.Fatal(err)
	}
	st := storetest.OpenAt(t, path, nil) // as a gated that runs
	m := &msg.Message{ChatJID: "telegram:1", Direction: msg.In, Timestamp: 1, ReceivedAt: 2,
		Content: "0123456789abcdef and sk-secret-of-the-agent \x1b[2J"}
	err := st.Write(t.Context(), func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(m)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	code, out, problem := run("1")
	if code != daemon.ExitOK || !strings.Contains(out, "message 1, inbound") || !strings.Contains(out, ": gated has never run with this data folder") {
		t.Errorf("exit %d, %s%s", code, out, problem)
	}
	for _, secret := range []string{"0123456789abcdef", "sk-secret-of-the-agent", "\x1b"} {
		if strings.Contains(out, secret) {
			t.Errorf("%q is printed:\n%s", secret, out)
		}
	}

	if _, last, _ := run("--chat", "telegram:1"); !strings.HasPrefix(last, "message 1, inbound") {
		t.Errorf("the last message of the chat: %s", last)
	}

	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"2", daemon.ExitFailure, "no message 2"},
		{"--chat telegram:2", daemon.ExitFailure, `no message of a user in chat "telegram:2": write /chatid`},
		{"", daemon.ExitRefused, "give MESSAGE"},
		{"1 --chat telegram:1", daemon.ExitRefused, "one of them"},
		{"x", daemon.ExitRefused, `"x" is not the id of a message`},
		{"0", daemon.ExitRefused, `"0" is not the id of a message`},
		{"1 2", daemon.ExitRefused, "usage: gated why MESSAGE"},
	} {
		if code, out, problem := run(strings.Fields(tt.args)...); code != tt.code || out != "" || !strings.Contains(problem, tt.want) {
			t.Errorf("why %s: exit %d, %s%s", tt.args, code, out, problem)
		}
	}
}

func TestContextShow(t *testing.T) {
	data := t.TempDir()
	t.Setenv("ARIZUKO_DATA", data)
	t.Setenv("ARIZUKO_SECRET", "0123456789abcdef")
	run := func(args string) (code int, stdout, stderr string) {
		var out, problems bytes.Buffer
		code = program().Run(t.Context(), append([]string{"context"}, strings.Fields(args)...), &out, &problems)
		return code, out.String(), problems.String()
	}
	path := filepath.Join(data, "arizuko.db")
	if err := storetest.Migrate(path); err != nil {
		t.Fatal(err)
	}
	st := storetest.OpenAt(t, path, nil) // as a gated that runs
	m := &msg.Message{ChatJID: "telegram:1", Direction: msg.In, Sender: "telegram:7", SenderName: "Alice", Timestamp: 1, ReceivedAt: 2, Content: "0123456789abcdef \u009b2J"}
	turn := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "telegram:1", CreatedAt: 3}
	err := st.Write(t.Context(), func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		turn.TriggerMessageID = m.ID
		if _, err := rows.PutTurn(tx, turn, 1); err != nil {
			return err
		}
		return tx.Decide(m.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: "main", TurnID: turn.ID}, 3)
	})
	if err != nil {
		t.Fatal(err)
	}
	if code, out, problem := run("show 1"); code != daemon.ExitFailure || out != "" || !strings.Contains(problem, "turn 1 has not started (queued)") {
		t.Errorf("a queued turn: exit %d, %s%s", code, out, problem)
	}
	if err := st.Write(t.Context(), func(tx *store.Tx) error {
		return rows.StartRun(tx, &msg.Run{Folder: "main", ChatJID: "telegram:1", Runtime: "process", StartedAt: 5}, turn.ID)
	}); err != nil {
		t.Fatal(err)
	}
	code, out, problem := run("show 1")
	if code != daemon.ExitOK || !strings.Contains(out, `<turn jid="telegram:1"`) || !strings.Contains(out, `name="Alice"`) || !strings.Contains(out, "?2J</message>") {
		t.Errorf("exit %d, %s%s", code, out, problem)
	}
	if strings.Contains(out, "0123456789abcdef") {
		t.Errorf("a secret is printed:\n%s", out)
	}
	if code, out, _ := run("--help"); code != daemon.ExitOK || !strings.Contains(out, "usage: gated context show TURN") || !strings.Contains(out, "It cannot tell") {
		t.Errorf("help: exit %d, %s", code, out)
	}

	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"show 9", daemon.ExitFailure, "no turn 9: `gated why MESSAGE` prints the turn of a message"},
		{"", daemon.ExitRefused, "say what to do: show"},
		{"look 1", daemon.ExitRefused, "say what to do: show"},
		{"show", daemon.ExitRefused, "TURN is missing"},
		{"show x", daemon.ExitRefused, `"x" is not the id of a turn`},
		{"show 1 2", daemon.ExitRefused, "usage: gated context show TURN"},
	} {
		if code, out, problem := run(tt.args); code != tt.code || out != "" || !strings.Contains(problem, tt.want) {
			t.Errorf("context %s: exit %d, %s%s", tt.args, code, out, problem)
		}
	}
}
