package store

// The statements on what agents have used; see queries.go.
const (
	upsertMovedSpend = `INSERT INTO spend (day, folder, chat_jid, turns, input_tokens, output_tokens, cost_usd)
		SELECT day, folder, ?2, turns, input_tokens, output_tokens, cost_usd FROM spend INDEXED BY spend_chat WHERE chat_jid = ?1
		ON CONFLICT (day, folder, chat_jid) DO UPDATE SET turns = spend.turns + excluded.turns, input_tokens = spend.input_tokens + excluded.input_tokens,
		output_tokens = spend.output_tokens + excluded.output_tokens, cost_usd = spend.cost_usd + excluded.cost_usd`
	deleteChatSpend = `DELETE FROM spend WHERE chat_jid = ?`

	spendSums      = `, sum(turns), sum(input_tokens), sum(output_tokens), sum(cost_usd) FROM spend`
	inDays         = ` WHERE day >= ?1 AND day <= ?2`
	ofFolder       = ` INDEXED BY spend_folder` + inDays + ` AND folder = ?3`
	expensiveFirst = ` ORDER BY 5 DESC, 1 LIMIT `

	querySpendDays        = `SELECT day` + spendSums + inDays + ` GROUP BY day ORDER BY day`
	queryFolderSpendDays  = `SELECT day` + spendSums + ofFolder + ` GROUP BY day ORDER BY day`
	querySpendGroups      = `SELECT folder` + spendSums + inDays + ` GROUP BY folder` + expensiveFirst + `?3+0`
	querySpendChats       = `SELECT chat_jid` + spendSums + inDays + ` GROUP BY chat_jid` + expensiveFirst + `?3+0`
	queryFolderSpendChats = `SELECT chat_jid` + spendSums + ofFolder + ` GROUP BY chat_jid` + expensiveFirst + `?4+0`
)
