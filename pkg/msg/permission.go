package msg

import "strings"

// AlwaysAllow is gated's own option of a permission request that a group has allowed before. It makes a rule.
const AlwaysAllow = "Always allow"

// PermissionRule is one row of permission_rules: a permission request that a group always allows. Times are unix ms.
type PermissionRule struct {
	ID          int64  `json:"id"`
	Folder      string `json:"folder"`
	ChatJID     string `json:"chat_jid"` // where it was made
	Tool        string `json:"tool"`
	PayloadHash string `json:"payload_hash"`
	TextHash    string `json:"-"`
	Text        string `json:"text"` // as users saw it, or its beginning
	Author      string `json:"author"`
	CreatedAt   int64  `json:"created_at"`
	Used        int64  `json:"used"`
	UsedAt      int64  `json:"used_at"` // 0 for never
}

// Binds reports whether the rule answers requests in a chat that are for some users: only while its author may answer
// them there. Where each user may, the rule counts in its own chat alone. Of the dashboard and the commands on the
// server, which are for operators, each rule counts.
func (r *PermissionRule) Binds(chatJID string, who Who) bool {
	switch {
	case r.Author == WebOperator, !strings.Contains(r.Author, ":"):
		return true
	case who.Everyone:
		return r.ChatJID == chatJID
	}
	return who.May(r.Author)
}

// MadeRule reports whether the answer to a question made a rule.
func (a *Ask) MadeRule() bool { return a.Always && a.RuleID != 0 }

// ByRule reports whether a rule gave the answer, and no user was asked.
func (a *Ask) ByRule() bool { return !a.Always && a.RuleID != 0 }

// Chosen is the option that a user chose, "" for none. The agent gets Option.
func (a *Ask) Chosen() string {
	if a.MadeRule() {
		return AlwaysAllow
	}
	return a.Option
}

// Own are the options without the one that gated added.
func (a *Ask) Own() []string {
	if a.Always && len(a.Options) > 0 {
		return a.Options[:len(a.Options)-1]
	}
	return a.Options
}

// OptionsJSON is the value of the column.
func (a *Ask) OptionsJSON() string { return toJSON(a.Options) }
