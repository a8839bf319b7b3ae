package rows

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"arizuko/pkg/agentproto"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// maxRules is how many rules a group has at most.
	maxRules = 200
	// maxRuleText bounds the text of a rule in bytes, maxRuleTool the name of its tool.
	maxRuleText = 1000
	maxRuleTool = 200
)

// setAllow notes what a permission request says about itself, if rules can apply to it: then one of its options, and no
// other one that reads the same, allows it.
func setAllow(a *msg.Ask, q *Question) {
	same := 0
	for _, option := range a.Options {
		if option == q.Allow {
			same++
		}
	}
	if a.IsPermission() && q.Allow != "" && same == 1 && len(q.About.Tool) <= maxRuleTool {
		a.Tool, a.Allow = q.About.Tool, q.Allow
	}
}

// byRule answers a new permission request by a rule of its group, and reports whether there is one. If there is none,
// but the group has allowed the same before, users may make one: it adds AlwaysAllow to the options.
func byRule(tx *store.Tx, t *msg.Turn, a *msg.Ask, now int64) (done bool, err error) {
	if a.Allow == "" {
		return false, nil
	}
	rules, err := rulesFor(tx, t.Folder, a)
	for _, rule := range rules {
		asked := &msg.Ask{Who: a.Who}
		asked.Who.Senders = slices.Clone(a.Who.Senders)
		if err == nil {
			err = factrows.AddAdmin(store.Uncancelled(), tx.Reader, t.ChatJID, rule.Author, asked)
		}
		if err != nil || !rule.Binds(t.ChatJID, asked.Who) {
			continue
		}
		a.State, a.Option, a.AnsweredBy, a.EndedAt = msg.AskAnswered, a.Allow, rule.Author, now
		a.RuleID, a.RuleAt = rule.ID, rule.CreatedAt
		return true, tx.Exec(`UPDATE permission_rules SET used = used + 1, used_at = ? WHERE id = ?`, now, rule.ID)
	}
	if err == nil {
		err = offerRule(tx, t.Folder, a)
	}
	return false, err
}

// rulesFor returns the rules of a group that match a permission request in all of it.
func rulesFor(tx *store.Tx, folder string, a *msg.Ask) ([]*msg.PermissionRule, error) {
	return factrows.ReadRules(store.Uncancelled(), tx.Reader, `SELECT `+factrows.RuleColumns+` FROM permission_rules
		WHERE folder = ? AND payload_hash = ? AND text_hash = ? AND tool = ? ORDER BY id`, folder, a.PayloadHash,
		textHash(a), a.Tool)
}

// textHash is that of all that users see of a permission request.
func textHash(a *msg.Ask) string {
	texts, _ := json.Marshal([]any{a.Question, a.Own(), a.Allow}) // texts have JSON
	sum := sha256.Sum256(texts)
	return hex.EncodeToString(sum[:])
}

// offerRule adds AlwaysAllow to the options of a permission request that a user of the group has allowed before.
func offerRule(tx *store.Tx, folder string, a *msg.Ask) error {
	const query = `SELECT EXISTS (SELECT 1 FROM asks a INDEXED BY asks_allow CROSS JOIN turns t ON t.id = a.turn_id
		WHERE a.payload_hash = ?1 AND a.allow <> '' AND a.allow = ?2 AND a.option = ?2 AND a.state = 'answered' AND a.tool = ?3
		AND a.question = ?4 AND (a.always = 0 AND a.options = ?5 OR a.always = 1 AND a.options = ?6) AND t.folder = ?7
		AND a.created_at >= ?8)`
	g, err := tx.Group(store.Uncancelled(), folder)
	if err != nil || g == nil || len(a.Options) >= agentproto.MaxOptions {
		return err
	}
	with := *a
	with.Options, with.Always = append(slices.Clone(a.Options), msg.AlwaysAllow), true
	if n, ok := with.Number(msg.AlwaysAllow); a.HasOption(msg.AlwaysAllow) || !ok || n != len(with.Options) { // the agent has an option that reads alike
		return nil
	}
	repeats, err := store.Value[bool](store.Uncancelled(), tx.Reader, query, a.PayloadHash, a.Allow, a.Tool, a.Question,
		a.OptionsJSON(), with.OptionsJSON(), folder, g.CreatedAt)
	if err != nil || !repeats {
		return err
	}
	if room, err := roomForRule(tx, folder); err != nil || !room {
		return err
	}
	*a = with
	return nil
}

// roomForRule reports whether a group can have one more rule.
func roomForRule(tx *store.Tx, folder string) (bool, error) {
	n, err := store.Value[int](store.Uncancelled(), tx.Reader, `SELECT count(*) FROM permission_rules WHERE folder = ?`,
		folder)
	if err != nil || n >= maxRules {
		return false, err
	}
	g, err := tx.Group(store.Uncancelled(), folder)
	return g != nil, err
}

// makeRule makes the rule of a question that a sender answered with AlwaysAllow. One that the chat has already becomes
// the sender's. Without room for it, the question is allowed this once.
func makeRule(tx *store.Tx, a *msg.Ask, sender string, now int64) error {
	const (
		insert = `INSERT INTO permission_rules (folder, chat_jid, tool, payload_hash, text_hash, text, author, created_at)
			VALUES (?,?,?,?,?,?,?,?)`
		update = `UPDATE permission_rules SET author = ?, created_at = ? WHERE id = ?`
	)
	t, err := tx.Turn(store.Uncancelled(), a.TurnID)
	if err != nil || t == nil {
		return err
	}
	text := store.Truncate(a.Question, maxRuleText)
	if text != a.Question {
		text += "…"
	}
	rules, err := rulesFor(tx, t.Folder, a)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(rules, func(r *msg.PermissionRule) bool { return r.ChatJID == t.ChatJID }); i >= 0 {
		a.RuleID, err = rules[i].ID, tx.Exec(update, sender, now, rules[i].ID)
	} else if room, err := roomForRule(tx, t.Folder); err != nil || !room {
		return err
	} else if a.RuleID, err = tx.Insert(insert, t.Folder, t.ChatJID, a.Tool, a.PayloadHash, textHash(a),
		text, sender, now); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	a.RuleAt = now
	return tx.PutAudit(sender, "always allow", fmt.Sprintf("rule %d of %s in %s", a.RuleID, t.Folder, t.ChatJID), now)
}

// RevokeRule deletes a rule, records it, and returns the rule, nil if there is none.
func RevokeRule(tx *store.Tx, id int64, by string, now int64) (*msg.PermissionRule, error) {
	rule, err := store.First(factrows.ReadRules(store.Uncancelled(), tx.Reader, `SELECT `+factrows.RuleColumns+
		` FROM permission_rules WHERE id = ?`, id))
	if err != nil || rule == nil {
		return nil, err
	}
	if err := tx.Exec(`DELETE FROM permission_rules WHERE id = ?`, id); err != nil {
		return nil, err
	}
	return rule, tx.PutAudit(by, "revoke rule", fmt.Sprintf("%d of %s, made by %s", id, rule.Folder, rule.Author), now)
}
