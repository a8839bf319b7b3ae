package rows

import (
	"context"
	"fmt"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// RuleColumns are those that ReadRules reads.
const RuleColumns = `id, folder, chat_jid, tool, payload_hash, text_hash, text, author, created_at, used, used_at`

// ReadRules runs a query of RuleColumns.
func ReadRules(ctx context.Context, r store.Reader, query string, args ...any) ([]*msg.PermissionRule, error) {
	return store.All(ctx, r, func(scan store.Scan) (*msg.PermissionRule, error) {
		var p msg.PermissionRule
		err := scan(&p.ID, &p.Folder, &p.ChatJID, &p.Tool, &p.PayloadHash, &p.TextHash, &p.Text, &p.Author,
			&p.CreatedAt, &p.Used, &p.UsedAt)
		if err != nil {
			return nil, fmt.Errorf("scan permission rule: %w", err)
		}
		return &p, nil
	}, query, args...)
}

// PermissionRules returns the rules of a group, which are few, the newest first.
func PermissionRules(ctx context.Context, r store.Reader, folder string) ([]*msg.PermissionRule, error) {
	return ReadRules(ctx, r, `SELECT `+RuleColumns+` FROM permission_rules WHERE folder = ? ORDER BY id DESC`, folder)
}
