package store

// metricPlans has the expected plan of every statement in queries_metrics.go: a partial index is
// read to its end or to the limit, no row but the oldest is.
func metricPlans() map[string][2]string {
	const counted, oldest = "CO-ROUTINE b\nCO-ROUTINE w\n", "\nSCAN w\nSCAN b\nCORRELATED SCALAR SUBQUERY 1\n" +
		"SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"
	return map[string][2]string{
		"queryUndecidedBacklog": {queryUndecidedBacklog, counted + "SCAN messages USING INDEX messages_undecided" + oldest},
		"queryParkedBacklog":    {queryParkedBacklog, counted + "SCAN messages USING COVERING INDEX messages_parked" + oldest},
		"queryOutboxBacklog":    {queryOutboxBacklog, counted + "SEARCH messages USING INDEX messages_outbox (platform=?)" + oldest},
		"queryFilesBacklog":     {queryFilesBacklog, counted + "SEARCH messages USING INDEX messages_wanted (platform=?)" + oldest},

		"queryRunningBacklog": {queryRunningBacklog, "SCAN turns USING INDEX turns_run"},
	}
}
