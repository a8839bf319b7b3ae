package rows

import (
	"context"
	"maps"
	"slices"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/store"
)

// LastStaleAt is when the last row of a chat arrived that was too old on arrival,
// in unix ms, 0 for never.
func LastStaleAt(ctx context.Context, r store.Reader, chatJID string) (int64, error) {
	const query = `SELECT received_at FROM messages INDEXED BY messages_stale WHERE chat_jid = ? AND reason = 'stale'
		ORDER BY id DESC LIMIT 1`
	return store.Value[int64](ctx, r, query, chatJID)
}

// BotTurns is the number of turns that another bot's messages in a chat have
// started since a time, in unix ms.
func BotTurns(ctx context.Context, r store.Reader, chatJID, sender string, since int64) (int, error) {
	// Of the newest 500 rows of the chat: a loop of bots is faster than users.
	const query = `SELECT count(DISTINCT turn_id) FROM (SELECT turn_id, sender, is_bot_message, received_at FROM messages
		WHERE chat_jid = ?1 ORDER BY id DESC LIMIT 500) n WHERE is_bot_message = 1 AND sender = ?2 AND turn_id IS NOT NULL AND received_at > ?3`
	return store.Value[int](ctx, r, query, chatJID, sender, since)
}

// SenderTurn is a turn that took a row of a sender, decided at that time, in unix ms.
type SenderTurn struct {
	Sender   string
	Turn, At int64
}

// FoldersOfSender returns the folders whose turns took a sender's rows of a chat, and
// whether turns took rows of any sender. Only the chat's last 1,000 rows are considered.
func FoldersOfSender(ctx context.Context, r store.Reader, chatJID, sender string) (folders []string, used bool,
	err error) {
	const query = `SELECT DISTINCT sender = ?2, routed_to FROM (SELECT sender, routed_to, turn_id FROM messages INDEXED BY messages_chat
		WHERE chat_jid = ?1 ORDER BY id DESC LIMIT 1000) n WHERE turn_id IS NOT NULL AND routed_to IS NOT NULL`
	err = r.Each(ctx, func(row store.Scan) (more bool, err error) {
		var own bool
		var folder string
		if err := row(&own, &folder); err != nil {
			return false, err
		}
		if used = true; own {
			folders = append(folders, folder)
		}
		return true, nil
	}, query, chatJID, sender)
	return folders, used, err
}

// RecentTurns returns the rows that turns of a folder took since a time with the senders who pay for them, in unix ms,
// oldest first. Only the folder's last 100,000 rows are considered.
func RecentTurns(ctx context.Context, r store.Reader, folder string, since int64) (all []SenderTurn, err error) {
	// Newest first; the reader stops at the first that is too old.
	const query = `SELECT CASE WHEN m.on_behalf_of = '' THEN m.sender ELSE m.on_behalf_of END, ifnull(m.turn_id, 0), ifnull(m.decided_at, 0),
		m.disposition = 'routed' AND (m.forwarded_from IS NULL OR m.on_behalf_of <> '')
		FROM messages m INDEXED BY messages_routed WHERE m.routed_to = ? ORDER BY m.decision_seq DESC LIMIT 100000`
	err = r.Each(ctx, func(row store.Scan) (more bool, err error) {
		var t SenderTurn
		var counts bool
		if err := row(&t.Sender, &t.Turn, &t.At, &counts); err != nil || t.At <= since {
			return false, err
		}
		if counts && t.Turn != 0 {
			all = append(all, t)
		}
		return true, nil
	}, query, folder)
	slices.Reverse(all)
	return all, err
}

// PaidTurns returns how many turns of a folder a sender has caused since a time, in unix ms, and when the first of the
// last rate ones was decided, 0 if there are fewer.
func PaidTurns(ctx context.Context, r store.Reader, folder, payer string, since int64, rate int) (n int, first int64,
	err error) {
	all, err := RecentTurns(ctx, r, folder, since)
	last := map[int64]int64{} // the last row of each turn counts
	for _, t := range all {
		if t.Sender == payer {
			last[t.Turn] = t.At
		}
	}
	if at := slices.Sorted(maps.Values(last)); rate > 0 && len(at) >= rate {
		first = at[len(at)-rate]
	}
	return len(last), first, err
}

// SenderSpend returns what the turns have used that a sender's last 10,000 messages began in a folder since a time, in
// unix ms. Turns of agents that report nothing don't count.
func SenderSpend(ctx context.Context, r store.Reader, folder, sender string, since int64) (factrows.Spend, error) {
	const query = `SELECT count(*), ifnull(sum(t.input_tokens), 0), ifnull(sum(t.output_tokens), 0), ifnull(sum(t.cost_usd), 0.0)
		FROM (SELECT id FROM messages INDEXED BY messages_sender WHERE sender = ?1 AND sender <> '' AND direction = 'in' ORDER BY id DESC LIMIT 10000) m
		CROSS JOIN turns t INDEXED BY turns_trigger ON t.trigger_message_id = m.id
		WHERE t.folder = ?2 AND t.created_at >= ?3 AND (t.input_tokens > 0 OR t.output_tokens > 0 OR t.cost_usd > 0)`
	return spendOf(ctx, r, query, sender, folder, since)
}

// ChatSpend returns what a folder's agents have used in a chat since a day, YYYY-MM-DD.
func ChatSpend(ctx context.Context, r store.Reader, folder, chatJID, day string) (factrows.Spend, error) {
	const query = `SELECT ifnull(sum(turns), 0), ifnull(sum(input_tokens), 0), ifnull(sum(output_tokens), 0), ifnull(sum(cost_usd), 0.0)
		FROM spend INDEXED BY spend_chat WHERE chat_jid = ? AND day >= ? AND folder = ?`
	return spendOf(ctx, r, query, chatJID, day, folder)
}

func spendOf(ctx context.Context, r store.Reader, query string, args ...any) (s factrows.Spend, err error) {
	_, err = r.Get(ctx, []any{&s.Turns, &s.Input, &s.Output, &s.CostUSD}, query, args...)
	return s, err
}

// LastRateLimit is when a message of a sender was last dropped for the rate of a group,
// in unix ms, 0 for never. Only the chat's last 1,000 rows are considered.
func LastRateLimit(ctx context.Context, r store.Reader, chatJID, sender string) (int64, error) {
	// Of the newest 1000 rows of the chat.
	const query = `SELECT ifnull(max(decided_at), 0) FROM (SELECT CASE WHEN on_behalf_of = '' THEN sender ELSE on_behalf_of END AS payer, verb, reason, decided_at
		FROM messages INDEXED BY messages_chat WHERE chat_jid = ? ORDER BY id DESC LIMIT 1000) n WHERE reason = 'rate_limit' AND payer = ? AND verb <> 'reaction'`
	return store.Value[int64](ctx, r, query, chatJID, sender)
}

// CommandsOf returns when a sender's commands and pins of a chat arrived that were answered, and when the last one did
// that was dropped since there were too many, in unix ms, 0 for never. Only the chat's last 1,000 rows are considered.
func CommandsOf(ctx context.Context, r store.Reader, chatJID, sender string) (answered []int64, dropped int64,
	err error) {
	// Likewise.
	const query = `SELECT received_at, reason = 'command_limit' FROM (SELECT sender, disposition, reason, received_at FROM messages INDEXED BY messages_chat
		WHERE chat_jid = ? ORDER BY id DESC LIMIT 1000) n WHERE sender = ? AND (disposition = 'sticky' OR reason IN ('command', 'pin_denied', 'command_limit'))`
	err = r.Each(ctx, func(row store.Scan) (more bool, err error) {
		var at int64
		var tooMany bool
		if err := row(&at, &tooMany); err != nil {
			return false, err
		}
		if tooMany {
			dropped = max(dropped, at)
		} else {
			answered = append(answered, at)
		}
		return true, nil
	}, query, chatJID, sender)
	return answered, dropped, err
}
