package store

// The statements on what agents have used; see queries.go.
const (
	upsertMovedSpend = `INSERT INTO spend (day, folder, chat_jid, turns, input_tokens, output_tokens, cost_usd)
		SELECT day, folder, ?2, turns, input_tokens, output_tokens, cost_usd FROM spend INDEXED BY spend_chat WHERE chat_jid = ?1
		ON CONFLICT (day, folder, chat_jid) DO UPDATE SET turns = spend.turns + excluded.turns, input_tokens = spend.input_tokens + excluded.input_tokens,
		output_tokens = spend.output_tokens + excluded.output_tokens, cost_usd = spend.cost_usd + excluded.cost_usd`
	deleteChatSpend = `DELETE FROM spend WHERE chat_jid = ?`

	querySpendDays       = `SELECT day, sum(turns), sum(input_tokens), sum(output_tokens), sum(cost_usd) FROM spend WHERE day >= ? AND day <= ? GROUP BY day ORDER BY day`
	queryFolderSpendDays = `SELECT day, sum(turns), sum(input_tokens), sum(output_tokens), sum(cost_usd) FROM spend INDEXED BY spend_folder WHERE day >= ?1 AND day <= ?2 AND folder = ?3 GROUP BY day ORDER BY day`
	querySpendGroups     = `SELECT folder, sum(turns), sum(input_tokens), sum(output_tokens), sum(cost_usd) FROM spend WHERE day >= ? AND day <= ? GROUP BY folder ORDER BY 5 DESC, 1 LIMIT ?+0`
	querySpendChats      = `SELECT chat_jid, sum(turns), sum(input_tokens), sum(output_tokens), sum(cost_usd) FROM spend WHERE day >= ? AND day <= ? GROUP BY chat_jid ORDER BY 5 DESC, 1 LIMIT ?+0`

	queryFolderSpendChats = `SELECT chat_jid, sum(turns), sum(input_tokens), sum(output_tokens), sum(cost_usd) FROM spend INDEXED BY spend_folder WHERE day >= ?1 AND day <= ?2 AND folder = ?3
		GROUP BY chat_jid ORDER BY 5 DESC, 1 LIMIT ?4+0`
	queryFolderSpend = `SELECT ifnull(sum(turns), 0), ifnull(sum(input_tokens), 0), ifnull(sum(output_tokens), 0), ifnull(sum(cost_usd), 0.0)
		FROM spend INDEXED BY spend_folder WHERE folder = ? AND day >= ? AND day <= ?`
)
