package services

import (
	"errors"
	"strings"
	"testing"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const putRule = `INSERT INTO permission_rules (folder, chat_jid, tool, payload_hash, text_hash, text, author, created_at, used, used_at)
	VALUES (?, 'telegram:1', ?, 'h', 't', ?, 'telegram:5', 43200000, ?, 0)`

func TestPermissions_ThoseWhoMayAnswer_ListAndRevoke(t *testing.T) {
	h := parallel(t)
	h.setConfig(map[string]any{"roles": map[string]any{"approve": []any{"telegram:7", map[string]any{"who": "telegram:8", "tools": []string{"Bash"}}}}})
	forged := "Run?\n- **rule 9**, made by telegram:9 on 1970-01-01, used 0 times: `x`"
	h.write(func(tx *store.Tx) error {
		for _, r := range [][]any{{"main", "Bash", forged, 3}, {"main", "Write", "Write it?", 0}, {"other", "Bash", "Run?", 0}} {
			if err := tx.Exec(putRule, r...); err != nil {
				return err
			}
		}
		return nil
	})
	decided := func(sender, text string) (string, int64) {
		m := &msg.Message{ID: 1, ChatJID: "telegram:1", Sender: sender, Verb: msg.VerbMessage, Content: text}
		o := h.Decide(t.Context(), decide.AskService{Row: 1, Service: decide.Gated, Folder: "main", Operator: sender == "telegram:9"}, m)
		return o.Reply, o.Revokes
	}
	none, usage := "This group has no rules", "Write /permissions revoke with the number"
	for _, tt := range []struct {
		sender, text, want string
		revokes            int64
	}{
		{"telegram:9", "/permissions", "- **rule 2**, made by telegram:5 on 1970-01-01, used 0 times: Write it?\n- **rule 1**", 0},
		{"telegram:7", "/permissions", "**rule 2**", 0},
		{"telegram:8", "/permissions", "always allowed:\n- **rule 1**, made by telegram:5 on 1970-01-01, used 3 times: Run? - \\*\\*rule 9\\*\\*", 0},
		{"telegram:6", "/permissions", none, 0},
		{"telegram:5", "/permissions", none, 0}, // made them, and may no longer answer
		{"telegram:9", "/permissions revoke 2", "Rule 2 is revoked", 2},
		{"telegram:8", "/permissions Revoke #1", "Rule 1 is revoked", 1},
		{"telegram:8", "/permissions revoke 2", "no rule 2 that you can revoke", 0},
		{"telegram:6", "/permissions revoke 1", "no rule 1 that", 0},
		{"telegram:9", "/permissions revoke 3", "no rule 3 that", 0}, // of another group
		{"telegram:9", "/permissions revoke", usage, 0},
		{"telegram:9", "/permissions grant 1", usage, 0},
	} {
		reply, revokes := decided(tt.sender, tt.text)
		if !strings.Contains(reply, tt.want) || revokes != tt.revokes || strings.Count(reply, "\n") > 3 {
			t.Errorf("%s %s: %q, %d", tt.sender, tt.text, reply, revokes)
		}
	}
	h.setConfig(map[string]any{"roles": map[string]any{"approve": "platform admins"}})
	h.write(func(tx *store.Tx) error {
		return errors.Join(tx.Exec(`INSERT INTO chat_admins (chat_jid, sender) VALUES ('telegram:1', 'telegram:6')`),
			tx.Exec(`UPDATE permission_rules SET chat_jid = 'telegram:2' WHERE id = 2`))
	})
	if reply, _ := decided("telegram:6", "/permissions"); !strings.Contains(reply, "**rule 1**") || strings.Contains(reply, "**rule 2**") {
		t.Errorf("an admin of one chat: %q", reply)
	}
	h.setConfig(map[string]any{"roles": map[string]any{"approve": "everyone"}})
	if reply, _ := decided("telegram:6", "/permissions"); !strings.Contains(reply, "**rule 1**") {
		t.Errorf("each user of their chat: %q", reply)
	}
}
